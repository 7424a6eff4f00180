package gateway_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/sandbox"
)

// pagedItems are what the upstream "paged" has, three on a page.
const pagedItems, pagedSize = 7, 3

// page returns the items from at on, and where the next page begins (-1: nowhere).
func page(at int) (items []map[string]any, next int) {
	items = []map[string]any{}
	for i := at; i < min(at+pagedSize, pagedItems); i++ {
		items = append(items, map[string]any{"id": "i" + strconv.Itoa(i)})
	}
	if next = at + pagedSize; next >= pagedItems {
		next = -1
	}
	return items, next
}

// cursor is what is told of the place where the next page begins, nil at the end.
func cursor(next int) any {
	if next < 0 {
		return nil
	}
	return fmt.Sprintf("at-%d", next)
}

// style is one way of paging: a tool's parameters, and what it answers.
type style struct {
	properties string
	answer     func(args map[string]any, at int) any
}

func styles() map[string]style {
	number := func(v any) int { n, _ := v.(float64); return int(n) }
	return map[string]style{
		"mcp_cursor": {`"cursor":{"type":"string"},"limit":{"type":"integer"}`, func(_ map[string]any, at int) any {
			items, next := page(at)
			return map[string]any{"things": items, "nextCursor": cursor(next), "total": pagedItems}
		}},
		"graphql": {`"after":{"type":"string","description":"cursor of the page before"},"first":{"type":"integer"}`, func(_ map[string]any, at int) any {
			items, next := page(at)
			edges := []any{}
			for _, item := range items {
				edges = append(edges, map[string]any{"node": item, "cursor": "x"})
			}
			return map[string]any{"data": map[string]any{"things": map[string]any{"edges": edges,
				"pageInfo": map[string]any{"hasNextPage": next >= 0, "endCursor": "at-" + strconv.Itoa(at+pagedSize)}}}}
		}},
		"slack_style": {`"cursor":{"type":["string","null"],"description":"pagination cursor"}`, func(_ map[string]any, at int) any {
			items, next := page(at)
			if at == pagedSize { // one with nothing on it, in between
				items = []map[string]any{}
			}
			c, _ := cursor(next).(string)
			return map[string]any{"ok": true, "members": items, "response_metadata": map[string]any{"next_cursor": c}}
		}},
		"page_url": {`"PageToken":{"type":"string"},"Page":{"type":"integer"}`, func(_ map[string]any, at int) any {
			items, next := page(at)
			answer := map[string]any{"calls": items, "uri": "/calls?PageToken=at-0"}
			if next >= 0 {
				answer["next_page_uri"] = fmt.Sprintf("/calls?Page=2&PageToken=at-%d", next)
			}
			return answer
		}},
		"whole_link": {`"skiptoken":{"type":"string","description":"Next page: the @odata.nextLink from the previous response."}`, func(_ map[string]any, at int) any {
			items, next := page(at)
			answer := map[string]any{"value": items}
			if next >= 0 {
				answer["@odata.nextLink"] = fmt.Sprintf("https://graph/v1?$skiptoken=at-%d", next)
			}
			return answer
		}},
		"last_id": {`"starting_after":{"type":"string"},"limit":{"type":"integer"}`, func(args map[string]any, _ int) any {
			last, _ := args["starting_after"].(string)
			at := 0
			if n, err := strconv.Atoi(strings.TrimPrefix(last, "i")); err == nil {
				at = n + 1
			}
			items, next := page(at)
			return map[string]any{"data": items, "has_more": next >= 0}
		}},
		"numbered": {`"page":{"type":"number"},"per_page":{"type":"number"}`, func(args map[string]any, _ int) any {
			items, _ := page((number(args["page"]) - 1) * pagedSize)
			return items
		}},
		"from_zero": {`"pageIdx":{"type":"integer","description":"Page number to return (0-based)."}`, func(args map[string]any, _ int) any {
			items, _ := page(number(args["pageIdx"]) * pagedSize)
			return map[string]any{"rows": items, "columns": []string{"id"}}
		}},
		"by_offset": {`"offset":{"type":"integer"},"limit":{"type":"integer"}`, func(args map[string]any, _ int) any {
			items, _ := page(number(args["offset"]))
			return map[string]any{"results": items}
		}},
	}
}

// pagedSite is an upstream that pages in every style.
func pagedSite(s *site) {
	for name, st := range styles() {
		s.tool(name, "List the things.", `"properties":{`+st.properties+`}`, func(raw json.RawMessage) *mcp.CallToolResult {
			args, at := map[string]any{}, 0
			_ = json.Unmarshal(raw, &args)
			for _, value := range args {
				if text, ok := value.(string); ok {
					if _, behind, cut := strings.Cut(text, "at-"); cut {
						at, _ = strconv.Atoi(behind)
					}
				}
			}
			answer, _ := json.Marshal(st.answer(args, at))
			return text(string(answer))
		})
	}
	s.tool("circle", "List in a circle.", `"properties":{"cursor":{"type":"string"},"limit":{"type":"integer"}}`,
		func(json.RawMessage) *mcp.CallToolResult { return text(`{"items":[1],"next_cursor":"again"}`) })
	s.tool("deaf", "List the same again.", `"properties":{"page":{"type":"integer"},"limit":{"type":"integer"}}`,
		func(json.RawMessage) *mcp.CallToolResult { return text(`[1,2]`) })
	s.tool("prose", "List in words.", `"properties":{"page":{"type":"integer"},"limit":{"type":"integer"}}`,
		func(json.RawMessage) *mcp.CallToolResult { return text("one, two") })
	s.tool("two_lists", "List two things.", `"properties":{"page":{"type":"integer"},"limit":{"type":"integer"}}`,
		func(json.RawMessage) *mcp.CallToolResult { return text(`{"cats":[1],"dogs":[2]}`) })
	s.tool("whole", "List all.", `"properties":{"limit":{"type":"integer"}}`, func(json.RawMessage) *mcp.CallToolResult { return text(`[1]`) })
}

const pagesInPython = `from servers import paged
from sallyport import ToolError, iterate
import asyncio
async def waiting(f):
    return [x["id"] async for x in iterate(f)]
out = {}
for name in NAMES:
    f = getattr(paged, name)
    out[name] = "".join(x["id"] for x in iterate(f))
    assert asyncio.run(waiting(f)) == [x["id"] for x in iterate(f)], name
    out[name] += " " + str(len(list(iterate(f, max_items=4)))) + str(len(list(iterate(f, max_items=0))))
for name in ("circle", "deaf", "prose", "two_lists", "whole"):
    try:
        for x in iterate(getattr(paged, name)): pass
        out[name] = "no error"
    except ToolError as e:
        out[name] = f"{e}; {e.hint}"
out["start"] = "".join(x["id"] for x in iterate(paged.numbered, page=2, per_page=3))
for text, f in {"text": "paged.numbered", "lambda": len}.items():
    try: iterate(f); out[text] = "no error"
    except TypeError as e: out[text] = str(e)
out`

const pagesInTypeScript = `import * as paged from "servers/paged";
import { iterate, ToolError } from "sallyport";
const out: Record<string, string> = {};
const all = async (f: any, args?: any, options?: any) => { const got: any[] = []; for await (const x of iterate(f, args, options)) got.push(x); return got; };
for (const name of NAMES) {
  const f = (paged as any)[name];
  out[name] = (await all(f)).map((x) => (x as any).id).join("") + " " + (await all(f, {}, { max_items: 4 })).length + (await all(f, {}, { max_items: 0 })).length;
}
for (const name of ["circle", "deaf", "prose", "two_lists", "whole"]) {
  try { await all((paged as any)[name]); out[name] = "no error"; } catch (e: any) { out[name] = e.message + "; " + e.hint; }
}
out.start = (await all(paged.numbered, { page: 2, per_page: 3 })).map((x: any) => x.id).join("");
for (const [text, f] of Object.entries({ text: "paged.numbered", lambda: () => 1 })) {
  try { iterate(f as any); out[text] = "no error"; } catch (e: any) { out[text] = e.message; }
}
out`

// TestPages follows every style of paging in real sandboxes, in both languages.
func TestPages(t *testing.T) {
	t.Parallel()
	cfg := withRunsc(t, settings(map[string]*site{"paged": newSite(t, pagedSite)}))
	cfg.Sandbox.Timeout = 2 * time.Minute
	cfg.Observe = false // what the first language learned of results would change the wrappers of the second
	g := open(t, cfg, nil)
	var names []string
	for name := range styles() {
		names = append(names, strconv.Quote(name))
	}
	list := "[" + strings.Join(names, ", ") + "]"
	for language, program := range map[string]string{"python": pagesInPython, "typescript": pagesInTypeScript} {
		t.Run(language, func(t *testing.T) {
			e := execute(t, g, language, strings.Replace(program, "NAMES", list, 1))
			wantText(t, e, sandbox.OK)
			var got map[string]string
			if err := json.Unmarshal([]byte(e.Text()), &got); err != nil {
				t.Fatalf("%v:\n%s", err, e.Text())
			}
			for name := range styles() {
				want := "i0i1i2i3i4i5i6 40"
				if name == "slack_style" {
					want = "i0i1i2i6 40" // the page in between is empty
				}
				if got[name] != want {
					t.Errorf("%s: %q, want %q", name, got[name], want)
				}
			}
			for name, want := range map[string]string{
				"circle": "a second time", "deaf": "the same page again", "prose": "answers with text", "two_lists": "several lists (cats, dogs)",
				"whole": "no parameter for pages; call it once", "start": "i3i4i5i6", "text": "iterate takes a wrapper and its arguments", "lambda": "",
			} {
				if !strings.Contains(got[name], want) || got[name] == "no error" {
					t.Errorf("%s: %q does not say %q", name, got[name], want)
				}
			}
		})
	}
}
