package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/gateway/guard"
	"sallyport/gateway/toolcall"
	"sallyport/internal/argcheck"
	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// ownID is the upstream under which programs reach the gateway itself. No other
// has that id: see [tool.Identifier].
const ownID = "sallyport"

// ownTool is what the gateway answers itself.
type ownTool struct {
	input func() *argcheck.Schema
	run   func(ctx context.Context, args json.RawMessage) (string, error)
}

// newOwn returns what there is. Running a program is not among it: a program starts no other.
func newOwn(g *Gateway) map[string]ownTool {
	own := map[string]ownTool{
		"search_tools": {ownInput(`"query":{"type":"string"},"detail":{"type":"string"},"upstream":{"type":"string"},"limit":{"type":"integer"},"language":{"type":"string"}`), g.searchForProgram},
		"describe":     {ownInput(`"tool":{"type":"string"},"language":{"type":"string"}`, "tool"), g.describeForProgram},
	}
	maps.Copy(own, g.ownSkills())
	return own
}

func ownInput(properties string, required ...string) func() *argcheck.Schema {
	schema := `{"type":"object","additionalProperties":false,"properties":{` + properties + `}`
	if len(required) > 0 {
		schema += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	return newEntry(tool.Tool{Input: json.RawMessage(schema + "}")}).input
}

// owned answers calls of the gateway itself.
func (g *Gateway) owned(next toolcall.Handler) toolcall.Handler {
	own := newOwn(g)
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if c.Tool.Upstream != ownID {
			return next(ctx, c)
		}
		t, ok := own[c.Tool.Name]
		if !ok {
			return tool.Result{}, notOwn(c.Tool, slices.Sorted(maps.Keys(own)))
		}
		if g.catalog.over() {
			return tool.Result{}, toolcall.ClosedError()
		}
		args := bytes.TrimSpace(c.Args)
		if len(args) == 0 || string(args) == "null" {
			args = []byte("{}")
		}
		if err := t.input().Check(args); err != nil {
			return tool.Result{}, err
		}
		text, err := t.run(ctx, args)
		if err != nil {
			return tool.Result{}, err
		}
		// Structured too: a text that looks like JSON is a text all the same.
		return tool.Result{Content: []tool.Content{{Type: "text", Text: text}}, Structured: quoted(text)}, nil
	}
}

func quoted(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string can always be encoded
	return bytes.TrimSpace(b.Bytes())
}

func notOwn(id tool.ID, names []string) error {
	near := nearest.Of(id.Name, names)
	if near != "" {
		near = ownID + "." + near
	}
	err := toolcall.Unknown("tool", id.String(), near)
	if functionNamed(id.Name) != nil {
		err.Hint = "import it from sallyport"
	}
	return err
}

// searchForProgram is Search without waiting: whoever started the program has
// waited for the upstreams, and an answer of now is of more use to it.
func (g *Gateway) searchForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var s Search
	if err := json.Unmarshal(args, &s); err != nil { // a limit beyond every int
		return "", toolcall.Invalid("limit is too large", "")
	}
	lang, err := g.normalize(&s)
	if err != nil {
		return "", err
	}
	found, err := g.search(ctx, s, lang)
	if err != nil {
		return "", err
	}
	return found.Text(), nil
}

// describeBudget is how many tokens it takes to tell what an upstream has.
const describeBudget = 1500

// describeForProgram tells all about what is named: a tool by its id, or by its
// own name where only one upstream has it, or else an upstream.
func (g *Gateway) describeForProgram(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Tool, Language string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object of strings", "")
	}
	s := Search{Detail: Full, Language: in.Language}
	lang, err := g.normalize(&s)
	if err != nil {
		return "", err
	}
	name := toolcall.TrimName(in.Tool)
	if up, module, ok := strings.Cut(name, "."); ok && up == skillsID && !g.hasUpstream(skillsID) {
		one, err := g.skill(ctx, module, 0)
		if err != nil {
			return "", err
		}
		found := Found{Detail: Full, Language: string(lang), Tools: []FoundTool{g.describeSkill(ctx, one, Full)}}
		return found.Text(), nil
	}
	if up, err := g.upstreamID(name); err == nil && up != "" {
		s := Search{Upstream: up, Detail: Summary, Budget: describeBudget}
		found, err := g.search(ctx, s, lang)
		return found.Text(), err
	}
	id, err := g.toolNamed(name)
	if err != nil {
		return "", err
	}
	found := Found{Detail: Full, Language: string(lang)}
	if f := functionNamed(id.Name); f != nil && id.Upstream == ownID {
		found.Tools = []FoundTool{describeFunction(*f, Full, lang)}
		return found.Text(), nil
	}
	_, entry, err := g.catalog.find(ctx, id)
	if err != nil {
		return "", err
	}
	described := describe(g.catalog.withObserved(entry), Full, lang, habits{})
	described.Policy = guard.PolicyWord(g.Guard.Expected(ctx, id, true))
	found.Tools = []FoundTool{described}
	return found.Text(), nil
}

// toolNamed finds the id that a model means by "up.name" or "name", also where
// it writes either as the upstream does.
func (g *Gateway) toolNamed(name string) (tool.ID, error) {
	if up, rest, ok := strings.Cut(name, "."); ok {
		id := tool.ID{Upstream: up, Name: rest}
		if up, err := g.upstreamID(up); err != nil {
			return id, err
		} else if id.Upstream = up; up == ownID {
			return id, g.notThere(id)
		}
		if _, ok := g.catalog.known(id); !ok && tool.Identifier(rest) != rest {
			id.Name = tool.Identifier(rest)
		}
		return id, nil
	}
	ids := g.named(name)
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return tool.ID{}, toolcall.Invalid(fmt.Sprintf("%d upstreams have a tool %s", len(ids), plain.Line(name, 80)), plain.Line("one of "+joined(ids), 400))
	}
	return tool.ID{}, g.noneNamed(name)
}

// notThere is the error for a function of ours that is none, nil for one that is.
func (g *Gateway) notThere(id tool.ID) error {
	if functionNamed(id.Name) != nil {
		return nil
	}
	return notOwn(id, functionNames())
}

// named returns the tools of that name, in order of their ids; ours come last, where no upstream has any.
func (g *Gateway) named(name string) []tool.ID {
	var ids []tool.ID
	for _, t := range g.catalog.current().tools {
		if t.ID.Name == name || t.Wire == name {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 && functionNamed(name) != nil {
		ids = append(ids, tool.ID{Upstream: ownID, Name: name})
	}
	return ids
}

func (g *Gateway) noneNamed(name string) error {
	ups := g.catalog.roster.Load().ids()
	names := append(functionNames(), ups...)
	for _, t := range g.catalog.current().tools {
		names = append(names, t.ID.Name)
	}
	near := nearest.Of(name, names)
	if ids := g.named(near); len(ids) > 0 && !slices.Contains(ups, near) {
		near = ids[0].String()
	}
	return toolcall.Unknown("tool", name, near)
}

func joined(ids []tool.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return strings.Join(texts, ", ")
}
