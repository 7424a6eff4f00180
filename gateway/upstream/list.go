package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/gateway/upstream/jsontext"
	"sallyport/gateway/upstream/paramheader"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Limits of one list of an upstream. The largest of 48 real servers has 345
// tools, and the largest definition of a tool has 85 KB.
const (
	maxPages      = 1000
	maxEntries    = 10_000
	maxDefinition = 1 << 20  // bytes of one entry
	maxList       = 64 << 20 // bytes of all
	maxWireName   = 1024     // bytes of a tool's or prompt's name
	maxURI        = 8 << 10  // bytes
	maxCursor     = 64 << 10 // bytes
)

// anyArguments replaces an input schema that is not an object.
const anyArguments = `{"type":"object"}`

// family is one kind of list: its method and how its entries are parsed.
type family[T any] struct {
	method string // "tools/list"
	member string // of a page, that holds the entries: "tools"
	noun   string // for the log: "tool"
	// parse parses one entry and returns its unique name.
	parse func(definition json.RawMessage) (entry T, name string, err error)
}

func toolFamily(s Settings) family[tool.Tool] {
	return family[tool.Tool]{"tools/list", "tools", "tool", func(definition json.RawMessage) (tool.Tool, string, error) {
		t, err := parseTool(definition)
		if err == nil && s.URL != "" { // stdio has no headers
			err = paramheader.Check(t.Input)
		}
		return t, t.Wire, err
	}}
}

func resourceFamily() family[tool.Resource] {
	return family[tool.Resource]{"resources/list", "resources", "resource", parseResource}
}

func templateFamily() family[tool.Template] {
	return family[tool.Template]{"resources/templates/list", "resourceTemplates", "resource template", parseTemplate}
}

func promptFamily() family[tool.Prompt] {
	return family[tool.Prompt]{"prompts/list", "prompts", "prompt", parsePrompt}
}

// list requests all pages and returns the entries in the order received.
func list[T any](ctx context.Context, l *link, f family[T]) ([]T, error) {
	g := &pageCollector[T]{family: f, log: skipLog{link: l, noun: f.noun}, seen: map[string]bool{}, link: l}
	defer g.log.close()
	var cursor *string
	for range maxPages {
		raw, err := l.page(ctx, f.method, cursor)
		if deep, ok := errors.AsType[*jsontext.DepthError](err); ok {
			raw, err = deep.Rest, nil // pruned entries are skipped
		}
		if e := rpcError(err); e != nil && e.Code == jsonrpc.CodeMethodNotFound {
			return g.found, nil // declared, but not implemented
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.method, err)
		}
		if cursor, err = g.addPage(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", f.method, err)
		}
		if cursor == nil {
			return g.found, nil
		}
	}
	l.log.Warn("list has too many pages, the rest is left out", "method", f.method, "pages", maxPages)
	return g.found, nil
}

// pageCollector collects the pages of one list.
type pageCollector[T any] struct {
	family[T]
	link  *link
	log   skipLog
	found []T
	seen  map[string]bool // names, and cursors
	size  int
}

// addPage adds one page and returns the cursor of the next, nil if it is the last.
func (g *pageCollector[T]) addPage(raw json.RawMessage) (*string, error) {
	var page map[string]json.RawMessage
	var entries []json.RawMessage
	if json.Unmarshal(raw, &page) != nil || page == nil || json.Unmarshal(orNull(page[g.member]), &entries) != nil {
		return nil, fmt.Errorf("the result is not a list of %s", g.member)
	}
	for _, definition := range entries {
		if len(g.found) == maxEntries || g.size > maxList {
			g.link.log.Warn("list is too long, the rest is left out", "method", g.method, "entries", len(g.found))
			return nil, nil
		}
		g.add(definition)
	}
	var cursor *string
	if json.Unmarshal(orNull(page["nextCursor"]), &cursor) != nil {
		return nil, errors.New("nextCursor is not a string")
	}
	return g.next(cursor), nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// next returns the cursor, nil if there is no next page or the cursor was used
// before. Before revision 2026-07-28 servers also sent "" at the end.
func (g *pageCollector[T]) next(cursor *string) *string {
	if cursor == nil || *cursor == "" && g.link.protocol < modern {
		return nil
	}
	key := "cursor " + *cursor
	if g.seen[key] || len(key) > maxCursor {
		g.link.log.Warn("list repeats a cursor or sends one that is too long, taken as its end", "method", g.method)
		return nil
	}
	g.seen[key] = true
	return cursor
}

func (g *pageCollector[T]) add(definition json.RawMessage) {
	g.size += len(definition)
	if len(definition) > maxDefinition {
		g.log.skip(string(definition[:100]), fmt.Sprintf("its definition has %d bytes", len(definition)))
		return
	}
	entry, name, err := g.parse(definition)
	if bytes.Contains(definition, []byte(jsontext.Pruned)) {
		err = &jsontext.DepthError{}
	}
	switch key := "entry " + name; {
	case err != nil:
		g.log.skip(name, err.Error())
	case g.seen[key]:
		g.log.skip(name, "its name is taken")
	default:
		g.seen[key] = true
		g.found = append(g.found, entry)
	}
}

// skipLog logs the skipped entries of a list by name: the first few in a line
// each, the rest together.
type skipLog struct {
	link     *link
	noun     string
	unlogged []string
	count    int
}

func (j *skipLog) skip(name, reason string) {
	j.count++
	if j.count <= maxJunkLogged {
		j.link.log.Warn("skip "+j.noun, j.noun, j.link.show(name), "reason", j.link.show(reason))
	} else if len(j.unlogged) < 100 {
		j.unlogged = append(j.unlogged, j.link.show(name))
	}
}

func (j *skipLog) close() {
	if len(j.unlogged) > 0 {
		j.link.log.Warn("skip more of the list", "count", j.count-maxJunkLogged, "names", strings.Join(j.unlogged, ", "))
	}
}

func (l *link) show(s string) string { return l.wire.redactor.line(s, 80) }

// parseTool parses one definition. It ignores invalid fields one by one: a tool
// with one invalid annotation is still usable. The schemas keep the bytes that were
// sent except white space, and so the order of properties.
func parseTool(definition json.RawMessage) (tool.Tool, error) {
	definition = compact(definition)
	fields := members(definition)
	if fields == nil {
		return tool.Tool{}, errors.New("not a JSON object")
	}
	t := tool.Tool{
		Wire:        text(fields["name"]),
		Title:       text(fields["title"]),
		Description: text(fields["description"]),
		Input:       json.RawMessage(anyArguments),
		Raw:         definition,
	}
	if err := checkName(t.Wire, "name", maxWireName); err != nil {
		return t, err
	}
	if schema := fields["inputSchema"]; isObject(schema) {
		t.Input = subslice(definition, schema)
	}
	if schema := fields["outputSchema"]; isObject(schema) {
		t.Output = subslice(definition, schema)
	}
	t.Annotations = parseAnnotations(fields["annotations"])
	if t.Title == "" {
		t.Title = text(member(fields["annotations"], "title"))
	}
	return t, nil
}

// compact returns raw without white space, as in the cache: an unchanged definition then
// has the same bytes in each run.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// subslice returns the part of raw that is equal to part, so that the copy need
// not be kept.
func subslice(raw, part json.RawMessage) json.RawMessage {
	if i := bytes.Index(raw, part); i >= 0 {
		return raw[i : i+len(part) : i+len(part)]
	}
	return part
}

func checkName(name, what string, most int) error {
	switch {
	case name == "":
		return errors.New("it has no " + what)
	case len(name) > most:
		return fmt.Errorf("its %s is longer than %d bytes", what, most)
	}
	return nil
}

func parseAnnotations(raw json.RawMessage) tool.Annotations {
	fields := members(raw)
	return tool.Annotations{
		ReadOnly:    flag(fields["readOnlyHint"]),
		Destructive: flag(fields["destructiveHint"]),
		Idempotent:  flag(fields["idempotentHint"]),
		OpenWorld:   flag(fields["openWorldHint"]),
	}
}

func parseResource(definition json.RawMessage) (tool.Resource, string, error) {
	fields := members(definition)
	r := tool.Resource{
		URI: text(fields["uri"]), Name: text(fields["name"]), Title: text(fields["title"]),
		Description: text(fields["description"]), MIME: text(fields["mimeType"]), Raw: definition,
	}
	return r, r.URI, checkName(r.URI, "uri", maxURI)
}

func parseTemplate(definition json.RawMessage) (tool.Template, string, error) {
	fields := members(definition)
	t := tool.Template{
		URI: text(fields["uriTemplate"]), Name: text(fields["name"]), Title: text(fields["title"]),
		Description: text(fields["description"]), MIME: text(fields["mimeType"]), Raw: definition,
	}
	return t, t.URI, checkName(t.URI, "uriTemplate", maxURI)
}

func parsePrompt(definition json.RawMessage) (tool.Prompt, string, error) {
	fields := members(definition)
	p := tool.Prompt{
		Name: text(fields["name"]), Title: text(fields["title"]), Description: text(fields["description"]), Raw: definition,
	}
	var arguments []json.RawMessage
	_ = json.Unmarshal(orNull(fields["arguments"]), &arguments) // none if it is not a list
	for _, raw := range arguments {
		fields := members(raw)
		a := tool.Argument{Name: text(fields["name"]), Description: text(fields["description"])}
		if required := flag(fields["required"]); required != nil {
			a.Required = *required
		}
		if a.Name != "" {
			p.Arguments = append(p.Arguments, a)
		}
	}
	return p, p.Name, checkName(p.Name, "name", maxWireName)
}

// text returns a JSON string, "" for anything else.
func text(raw json.RawMessage) string {
	if len(raw) >= jsontext.LongText {
		if s, ok := jsontext.LongString(raw); ok {
			return s
		}
	}
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

// members returns the members of a JSON object, nil for anything else.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// member returns one member of a JSON object, nil if there is none.
func member(raw json.RawMessage, name string) json.RawMessage { return members(raw)[name] }

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// objectOf checks that the arguments of a call are a JSON object; none become {}.
func objectOf(args json.RawMessage) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}"), nil
	}
	if trimmed[0] != '{' || !json.Valid(trimmed) {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "arguments must be a JSON object, not " + sanitize.Line(string(trimmed), 40)}
	}
	return trimmed, nil
}

// marshal is json.Marshal without escaping HTML characters.
func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}
