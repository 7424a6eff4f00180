package toolsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/gateway/toolcall"
	"sallyport/internal/argcheck"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Builtin is a function for programs that the gateway itself implements.
type Builtin struct {
	input func() *argcheck.Schema
	run   func(ctx context.Context, args json.RawMessage) (string, error)
}

// NewBuiltin returns a function that checks its arguments against properties of JSON Schema, then calls run.
func NewBuiltin(run func(ctx context.Context, args json.RawMessage) (string, error), properties string, required ...string) Builtin {
	schema := `{"type":"object","additionalProperties":false,"properties":{` + properties + `}`
	if len(required) > 0 {
		schema += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return Builtin{sync.OnceValue(func() *argcheck.Schema { return argcheck.Compile(json.RawMessage(schema + "}")) }), run}
}

// Builtins returns the functions for programs about tools. None runs a program: a program must not start another.
func (sr *Searcher) Builtins() map[string]Builtin {
	return map[string]Builtin{
		"search_tools": NewBuiltin(sr.searchForProgram,
			`"query":{"type":"string"},"detail":{"type":"string"},"upstream":{"type":"string"},"limit":{"type":"integer"},"language":{"type":"string"}`),
		"describe": NewBuiltin(sr.describeForProgram, `"tool":{"type":"string"},"language":{"type":"string"}`, "tool"),
	}
}

// Answer is middleware that handles calls of built-in functions. They fail once closed reports true.
func Answer(closed func() bool, all ...map[string]Builtin) toolcall.Middleware {
	own := map[string]Builtin{}
	for _, some := range all {
		maps.Copy(own, some)
	}
	return func(next toolcall.Handler) toolcall.Handler {
		return func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if c.Tool.Upstream != toolcall.GatewayID {
				return next(ctx, c)
			}
			t, ok := own[c.Tool.Name]
			switch {
			case !ok:
				return tool.Result{}, unknownBuiltin(c.Tool, slices.Sorted(maps.Keys(own)))
			case closed():
				return tool.Result{}, toolcall.ClosedError()
			}
			return t.answer(ctx, c.Args)
		}
	}
}

// answer checks the arguments and runs the function.
func (t Builtin) answer(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	if args = bytes.TrimSpace(args); len(args) == 0 || string(args) == "null" {
		args = []byte("{}")
	}
	if err := t.input().Check(args); err != nil {
		return tool.Result{}, err
	}
	text, err := t.run(ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	// Structured too, so that a text that looks like JSON stays a string.
	return tool.Result{Content: []tool.Content{{Type: "text", Text: text}}, Structured: quoteJSON(text)}, nil
}

func quoteJSON(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded
	return bytes.TrimSpace(b.Bytes())
}

func unknownBuiltin(id tool.ID, names []string) error {
	near := suggest.Of(id.Name, names)
	if near != "" {
		near = toolcall.GatewayID + "." + near
	}
	err := toolcall.Unknown("tool", id.String(), near)
	if functionNamed(id.Name) != nil {
		err.Hint = "import it from sallyport"
	}
	return err
}

// searchForProgram is Search without waiting: the caller of the program has
// already waited for the upstreams.
func (sr *Searcher) searchForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var s Request
	if err := json.Unmarshal(args, &s); err != nil { // a limit beyond every int
		return "", toolcall.Invalid("limit is too large", "")
	}
	lang, err := sr.normalize(ctx, &s)
	if err != nil {
		return "", err
	}
	found, err := sr.search(ctx, s, lang)
	if err != nil {
		return "", err
	}
	return found.Text(), nil
}

// describeBudget is how many tokens the description of an upstream may have.
const describeBudget = 1500

// describeForProgram describes a tool by its id, or by its own name if only one
// upstream has it, or else an upstream.
func (sr *Searcher) describeForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Tool, Language string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object of strings", "")
	}
	s := Request{Detail: Full, Language: in.Language}
	lang, err := sr.normalize(ctx, &s)
	if err != nil {
		return "", err
	}
	name := toolcall.TrimName(in.Tool)
	if up, module, ok := strings.Cut(name, "."); ok && up == toolcall.SkillsID && !sr.opts.Catalog.Has(toolcall.SkillsID) {
		one, err := sr.opts.Skills.Describe(ctx, module)
		if err != nil {
			return "", err
		}
		found := Found{Detail: Full, Language: string(lang), Tools: []FoundTool{one}}
		return found.Text(), nil
	}
	if up, err := sr.upstreamID(ctx, name); err == nil && up != "" {
		s := Request{Upstream: up, Detail: Summary, Budget: describeBudget}
		found, err := sr.search(ctx, s, lang)
		return found.Text(), err
	}
	id, err := sr.resolveTool(ctx, name)
	if err != nil {
		return "", err
	}
	found := Found{Detail: Full, Language: string(lang)}
	if f := functionNamed(id.Name); f != nil && id.Upstream == toolcall.GatewayID {
		found.Tools = []FoundTool{describeFunction(*f, Full, lang)}
		return found.Text(), nil
	}
	entry, err := sr.in(ctx).find(ctx, id)
	if err != nil {
		return "", err
	}
	described := describe(sr.opts.Catalog.WithObserved(entry), Full, lang, catalog.Boilerplate{})
	described.Policy = guard.PolicyLabel(sr.opts.Guard.ExpectedAction(ctx, id, true))
	found.Tools = []FoundTool{described}
	return found.Text(), nil
}

// resolveTool returns the id for "up.name" or "name". Either part may also be the
// upstream's own spelling.
func (sr *Searcher) resolveTool(ctx context.Context, name string) (tool.ID, error) {
	if up, rest, ok := strings.Cut(name, "."); ok {
		id := tool.ID{Upstream: up, Name: rest}
		if up, err := sr.upstreamID(ctx, up); err != nil {
			return id, err
		} else if id.Upstream = up; up == toolcall.GatewayID {
			return id, sr.checkBuiltin(id)
		}
		if _, ok := sr.in(ctx).lookup(id); !ok && tool.Identifier(rest) != rest {
			id.Name = tool.Identifier(rest)
		}
		return id, nil
	}
	ids := sr.toolsNamed(ctx, name)
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return tool.ID{}, toolcall.Invalid(fmt.Sprintf("%d upstreams have a tool %s", len(ids), sanitize.Line(name, 80)), sanitize.Line("one of "+joinIDs(ids), 400))
	}
	return tool.ID{}, sr.unknownTool(ctx, name)
}

// checkBuiltin returns an error if the built-in function does not exist.
func (sr *Searcher) checkBuiltin(id tool.ID) error {
	if functionNamed(id.Name) != nil {
		return nil
	}
	return unknownBuiltin(id, functionNames())
}

// toolsNamed returns the tools of that name, in order of their ids, or the built-in function if no upstream has one.
func (sr *Searcher) toolsNamed(ctx context.Context, name string) []tool.ID {
	var ids []tool.ID
	for _, t := range sr.in(ctx).snapshot().Tools {
		if t.ID.Name == name || t.Wire == name {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 && functionNamed(name) != nil {
		ids = append(ids, tool.ID{Upstream: toolcall.GatewayID, Name: name})
	}
	return ids
}

func (sr *Searcher) unknownTool(ctx context.Context, name string) error {
	ups := sr.in(ctx).ids()
	names := append(functionNames(), ups...)
	for _, t := range sr.in(ctx).snapshot().Tools {
		names = append(names, t.ID.Name)
	}
	near := suggest.Of(name, names)
	if ids := sr.toolsNamed(ctx, near); len(ids) > 0 && !slices.Contains(ups, near) {
		near = ids[0].String()
	}
	return toolcall.Unknown("tool", name, near)
}

func joinIDs(ids []tool.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, ", ")
}
