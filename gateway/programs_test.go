package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/sandbox"
)

// library is an upstream with resources, prompts, a tool that tells of its
// progress, and one that asks a person.
func library(s *site) {
	s.AddResource(&mcp.Resource{URI: "lib://readme", Name: "readme", MIMEType: "application/json"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "lib://readme", Text: `{"a": 1}`}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "lib://page/{n}", Name: "page"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: req.Params.URI, Blob: []byte{0, 255}, MIMEType: "image/png"}, {URI: req.Params.URI, Text: "page " + req.Params.URI[len("lib://page/"):]},
		}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "sum up", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}, {Name: "in words"}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprint(req.Params.Arguments)}}}}, nil
	})
	add := func(name string, run func(ctx context.Context, req *mcp.CallToolRequest) error) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return text("finished"), run(ctx, req)
		})
	}
	add("work", func(ctx context.Context, req *mcp.CallToolRequest) error {
		token := req.Params.GetProgressToken()
		if token == nil {
			return fmt.Errorf("nobody listens")
		}
		for i := range 5 {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 5, Message: "at it"}); err != nil {
				return err
			}
		}
		return nil
	})
	add("ask", func(ctx context.Context, req *mcp.CallToolRequest) error {
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "your name?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		return err
	})
}

// TestProgramsReachWhatIsNoTool runs real programs in both languages.
func TestProgramsReachWhatIsNoTool(t *testing.T) {
	g := open(t, withRunsc(t, settings(map[string]*site{"lib": newSite(t, library)})), nil)
	g.Catalog.WaitConnected(t.Context())
	for language, code := range map[string]string{
		"python": `
import servers
from servers.lib import resources, prompts, work
from sallyport import progress, ToolError
blob, page = servers.lib.resources.read("lib://page/7")
print(resources.read("lib://readme"), list(blob.data), blob.mime, page)
print([r["uri"] for r in resources.list()], [r["uriTemplate"] for r in resources.templates()], [p["name"] for p in prompts.list()])
print(prompts.get("sum up", {"in words": 3}, name="x")["messages"][0]["content"]["text"])
for wrong in (lambda: resources.read("lib://none"), lambda: prompts.get("sum upp"), lambda: prompts.get("sum up")):
    try: print(wrong())
    except ToolError as e: print(e.kind)
heard = []
with progress(heard.append): print(work())
print(heard[-1].progress, heard[-1].total, heard[-1].message)
`,
		"typescript": `
import * as servers from "servers";
import { resources, prompts, work } from "servers/lib";
import { progress } from "sallyport";
const [blob, page] = await servers.lib.resources.read("lib://page/7") as any;
const py = (v: any): string => Array.isArray(v) ? "[" + v.map((x) => typeof x === "string" ? "'" + x + "'" : x).join(", ") + "]" : String(v);
console.log(await resources.read("lib://readme"), py([...blob.data]), blob.mime, page);
console.log(py((await resources.list()).map((r) => r.uri)), py((await resources.templates()).map((r) => r.uriTemplate)), py((await prompts.list()).map((p) => p.name)));
console.log(((await prompts.get("sum up", { "in words": 3, name: "x" })).messages[0].content as any).text);
for (const wrong of [() => resources.read("lib://none"), () => prompts.get("sum upp"), () => prompts.get("sum up")])
  await wrong().then(console.log, (e) => console.log(e.kind));
const heard: any[] = [];
console.log(await progress((p) => heard.push(p), () => work()));
console.log(heard.at(-1).progress, heard.at(-1).total, heard.at(-1).message);
`,
	} {
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: code, Language: language})
		if err != nil || e.Status != sandbox.OK {
			t.Errorf("%s: %v, %s, %+v, %s%s", language, err, e.Status, e.Fault, e.Stdout.Text, e.Stderr.Text)
			continue
		}
		want := `{"a": 1} [0, 255] image/png page 7
['lib://readme'] ['lib://page/{n}'] ['sum up']
map[in words:3 name:x]
invalid
not_found
invalid
finished
5 5 at it
`
		if diff := cmp.Diff(want, e.Stdout.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", language, diff)
		}
	}
}

// TestProgramsCannotAnswerAnUpstream asks where the gateway said that nobody can
// be asked, and where it said that somebody can: but not a program.
func TestProgramsCannotAnswerAnUpstream(t *testing.T) {
	for asks, want := range map[bool]string{false: "client does not support elicitation", true: "a program cannot give it"} {
		g := open(t, withRunsc(t, settings(map[string]*site{"lib": newSite(t, library)})), &gateway.Options{PeerRequests: asks})
		g.Catalog.WaitConnected(t.Context())
		e, err := g.Executor.Execute(t.Context(), execution.Program{Code: "from servers.lib import ask\nask()"})
		if err != nil || e.Fault == nil || !strings.Contains(e.Fault.Message+e.Fault.Hint, want) {
			t.Errorf("asks %t: %v, %+v", asks, err, e.Fault)
		}
	}
}

func TestListingTellsOfResourcesAndPrompts(t *testing.T) {
	g := open(t, settings(map[string]*site{"lib": newSite(t, library)}), nil)
	g.Catalog.WaitConnected(t.Context())
	for language, want := range map[string]string{
		"python":     "from servers.lib import resources, prompts: resources.read(uri) (1 listed, 1 template), prompts.get(name, **arguments) (1 listed)",
		"typescript": `import { resources, prompts } from "servers/lib": resources.read(uri) (1 listed, 1 template), prompts.get(name, arguments) (1 listed)`,
	} {
		found, err := g.Searcher.Search(t.Context(), toolsearch.Request{Upstream: "lib", Language: language})
		if err != nil || !strings.HasSuffix(found.Text(), "\n"+want) {
			t.Errorf("%s: %v\n%s", language, err, found.Text())
		}
	}
}
