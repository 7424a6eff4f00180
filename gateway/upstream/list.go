package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// The most that is taken of an upstream's list. The largest of 48 real servers
// has 345 tools, and the largest definition of a tool 85 KB.
const (
	maxPages      = 1000
	maxTools      = 10_000
	maxDefinition = 1 << 20  // bytes of one tool
	maxList       = 64 << 20 // bytes of all
	maxWireName   = 1024     // bytes
	maxCursor     = 64 << 10 // bytes
)

// anyArguments stands in for an input schema that is not an object.
const anyArguments = `{"type":"object"}`

// catalog is the list of tools as the session keeps it.
type catalog struct {
	tools  []tool.Tool
	wire   map[string]string // tool.ID.Name to the name in tools/call
	digest string            // "" only before the first list
}

// replace takes over a list and reports whether it differs from the last.
func (c *catalog) replace(tools []tool.Tool) bool {
	next := catalog{tools: tools, wire: make(map[string]string, len(tools))}
	sum := sha256.New()
	for _, t := range tools {
		next.wire[t.ID.Name] = t.Wire
		sum.Write([]byte(t.Digest()))
	}
	next.digest = string(sum.Sum(nil))
	differs := next.digest != c.digest
	*c = next
	return differs
}

func (c *catalog) names() []string {
	names := make([]string, len(c.tools))
	for i, t := range c.tools {
		names[i] = t.ID.Name
	}
	return names
}

// list asks for all pages and returns the tools, sorted by ID.
func (l *link) list(ctx context.Context) ([]tool.Tool, error) {
	g := &gathering{link: l, seen: map[string]bool{}}
	var cursor *string
	for range maxPages {
		raw, err := l.page(ctx, cursor)
		if e := answered(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound {
			break // a server of resources or prompts only
		}
		if err != nil {
			return nil, err
		}
		if cursor, err = g.take(raw); err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		if cursor == nil {
			return g.tools(), nil
		}
	}
	if cursor != nil {
		g.skip("list has too many pages, the rest is left out", "pages", maxPages)
	}
	return g.tools(), nil
}

// gathering collects the pages of one list.
type gathering struct {
	link    *link
	found   []tool.Tool
	seen    map[string]bool // names on the wire, and cursors
	size    int
	skipped int
}

// take reads one page and returns the cursor of the next, nil if that was the last.
func (g *gathering) take(raw json.RawMessage) (*string, error) {
	var page struct {
		Tools  []json.RawMessage `json:"tools"`
		Cursor *string           `json:"nextCursor"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, errors.New("the answer is no list of tools")
	}
	for _, definition := range page.Tools {
		if len(g.found) == maxTools || g.size > maxList {
			g.skip("list is too long, the rest is left out", "tools", len(g.found))
			return nil, nil
		}
		g.add(definition)
	}
	return g.next(page.Cursor), nil
}

// next returns the cursor, unless it says that there is no next page or has been
// used before. Before revision 2026-07-28 servers also wrote "" for the end.
func (g *gathering) next(cursor *string) *string {
	if cursor == nil || *cursor == "" && g.link.protocol < modern {
		return nil
	}
	key := "cursor " + *cursor
	if g.seen[key] || len(key) > maxCursor {
		g.skip("list repeats a cursor or sends one that is too long, taken as its end")
		return nil
	}
	g.seen[key] = true
	return cursor
}

func (g *gathering) add(definition json.RawMessage) {
	g.size += len(definition)
	if len(definition) > maxDefinition {
		g.skip("skip tool, its definition is too long", "bytes", len(definition), "begins", g.link.show(string(definition)))
		return
	}
	t, err := parseTool(definition)
	switch key := "tool " + t.Wire; {
	case err != nil:
		g.skip("skip tool", "reason", err.Error(), "tool", g.link.show(t.Wire))
	case g.seen[key]:
		g.skip("skip tool, its name is taken", "tool", g.link.show(t.Wire))
	default:
		g.seen[key] = true
		g.found = append(g.found, t)
	}
}

// skip logs what is left out, a few times for each list.
func (g *gathering) skip(msg string, args ...any) {
	if g.skipped++; g.skipped <= junkLogged {
		g.link.log.Warn(msg, args...)
	}
}

func (l *link) show(s string) string { return l.wire.veil.line(s, 80) }

// tools gives every tool its id.
func (g *gathering) tools() []tool.Tool {
	names := make([]string, len(g.found))
	for i, t := range g.found {
		names[i] = t.Wire
	}
	ids := tool.Identifiers(names)
	for i := range g.found {
		g.found[i].ID = tool.ID{Upstream: g.link.settings.ID, Name: ids[i]}
	}
	slices.SortStableFunc(g.found, func(a, b tool.Tool) int { return strings.Compare(a.ID.Name, b.ID.Name) })
	return slices.CompactFunc(g.found, func(a, b tool.Tool) bool {
		if a.ID != b.ID { // only a name made to look like another's id gets here
			return false
		}
		g.skip("skip tool, its identifier is taken", "tool", g.link.show(b.Wire))
		return true
	})
}

// parseTool reads one definition. What is not as the protocol wants it is left
// out field by field: an upstream with one odd annotation is still of use. The
// schemas stay the bytes that were sent, so that the order of properties does too.
func parseTool(definition json.RawMessage) (tool.Tool, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(definition, &fields); err != nil || fields == nil {
		return tool.Tool{}, errors.New("it is no JSON object")
	}
	t := tool.Tool{
		Wire:        text(fields["name"]),
		Title:       text(fields["title"]),
		Description: text(fields["description"]),
		Input:       json.RawMessage(anyArguments),
	}
	switch {
	case t.Wire == "":
		return t, errors.New("it has no name")
	case len(t.Wire) > maxWireName:
		return t, fmt.Errorf("its name is longer than %d bytes", maxWireName)
	}
	if schema := fields["inputSchema"]; isObject(schema) {
		t.Input = schema
	}
	if schema := fields["outputSchema"]; isObject(schema) {
		t.Output = schema
	}
	t.Annotations = parseAnnotations(fields["annotations"])
	if t.Title == "" {
		t.Title = text(member(fields["annotations"], "title"))
	}
	return t, nil
}

func parseAnnotations(raw json.RawMessage) tool.Annotations {
	return tool.Annotations{
		ReadOnly:    flag(member(raw, "readOnlyHint")),
		Destructive: flag(member(raw, "destructiveHint")),
		Idempotent:  flag(member(raw, "idempotentHint")),
		OpenWorld:   flag(member(raw, "openWorldHint")),
	}
}

// text returns a JSON string, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// flag returns a JSON boolean, nil for anything else.
func flag(raw json.RawMessage) *bool {
	var b *bool
	if json.Unmarshal(raw, &b) != nil {
		return nil
	}
	return b
}

// member returns one member of a JSON object, nil if there is none.
func member(raw json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields[name]
}

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// objectOf checks the arguments of a call, which its JSON must be an object.
func objectOf(args json.RawMessage) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}"), nil
	}
	if trimmed[0] != '{' || !json.Valid(trimmed) {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "arguments must be a JSON object, not " + plain.Line(string(trimmed), 40)}
	}
	return trimmed, nil
}

// marshal is json.Marshal without changing "<" and its like in what is passed on.
func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}
