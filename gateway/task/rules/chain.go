package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// source is a member of a tool's result.
type source struct {
	// list is the member with a list of objects, "" for a result that is the object itself; member is in the object.
	list, member string
	// by is a member of the objects that identifies one by a text of the task; "" for none.
	by, value string
}

// chain finds calls with a result that has the value of a parameter, and the expression of it.
func (p planner) chain(target tool.Tool, param string, f *facts, depth int) ([]step, string, bool) {
	want := parse(target.Input).Properties[param]
	for _, c := range p.request.Tools {
		t := c.Tool
		if t.ID == target.ID || t.Output == nil || !reads(t) {
			continue
		}
		s, ok := find(t, target, param, want)
		if !ok {
			continue
		}
		trial := &facts{task: f.task, args: f.args, taken: maps.Clone(f.taken)}
		for _, one := range f.all {
			clone := *one
			trial.all = append(trial.all, &clone)
		}
		inner := bind(t, trial)
		var before []step
		for _, name := range inner.missing {
			if depth > 1 {
				if more, value, found := p.chain(t, name, trial, depth-1); found {
					before = append(before, more...)
					inner.args = append(inner.args, arg{name: name, expr: value})
					continue
				}
			}
			before = nil
			ok = false
		}
		if !ok {
			continue
		}
		if s.list != "" && !s.choose(parse(t.Output), trial) {
			continue
		}
		f.all, f.taken = trial.all, trial.taken
		name := fmt.Sprintf("found%d", 3-depth)
		return append(before, s.step(t, inner.args, name)), s.expression(name), true
	}
	return nil, "", false
}

// reads reports whether a tool only reads, by its name, unless it says that it does not.
func reads(t tool.Tool) bool {
	if a := t.Annotations.ReadOnly; a != nil {
		return *a
	}
	for _, w := range nameWords(t) {
		if c := class(w); c != "" {
			return c == "read"
		}
	}
	return false
}

// find looks for a member that fits a parameter by name and type, in the result or in the objects of its lists.
func find(from, target tool.Tool, param string, want schema) (source, bool) {
	out := parse(from.Output)
	if m := member(out, from, target, param, want); m != "" {
		return source{member: m}, true
	}
	for _, name := range sortedKeys(out.Properties) {
		if p := out.Properties[name]; p.kind() == "array" && p.Items != nil {
			if m := member(*p.Items, from, target, param, want); m != "" {
				return source{list: name, member: m}, true
			}
		}
	}
	return source{}, false
}

// member returns the member that fits: of the same name, or the parameter's name behind that of the thing, or that of the
// thing, or the id of what the other tool finds.
func member(of schema, from, target tool.Tool, param string, want schema) string {
	thing, found := thingOf(target), thingOf(from)
	general := slices.Contains([]string{"id", "name", "key", "number"}, strings.ToLower(param))
	for _, name := range sortedKeys(of.Properties) {
		folded, k := fold(name), of.Properties[name].kind()
		if k != want.kind() {
			continue
		}
		if folded == fold(param) && !general || thing != "" && (folded == thing+fold(param) || general && folded == thing) || found != "" && !general && found+folded == fold(param) {
			return name
		}
	}
	return ""
}

// thingOf returns the stem of the last noun of a tool's name, "" without one.
func thingOf(t tool.Tool) (thing string) {
	for _, w := range nameWords(t) {
		if class(w) == "" {
			thing = w
		}
	}
	return thing
}

// choose finds the member by which the task names one of the objects of a list.
func (s *source) choose(out schema, f *facts) bool {
	item := out.Properties[s.list].Items
	for _, one := range f.of("quoted", "name", "number") {
		for _, name := range []string{"id", "key", "name", "title", "number"} {
			p, ok := item.Properties[name]
			if !ok || one.kind == "number" != (p.kind() == "integer" || p.kind() == "number") {
				continue
			}
			one.used = true
			s.by, s.value = name, python(one.text)
			if one.kind == "number" {
				s.value = strings.TrimPrefix(one.text, "#")
			}
			return true
		}
	}
	return false
}

// step returns the call, with the choice of one object of its list.
func (s source) step(t tool.Tool, args []arg, name string) step {
	out := step{tool: t, args: args, name: name}
	if s.list != "" {
		out.then = []string{
			fmt.Sprintf("%s = [one for one in %s[%s] if one.get(%s) == %s]", name, name, python(s.list), python(s.by), s.value),
			fmt.Sprintf("if len(%s) != 1:", name),
			fmt.Sprintf("    raise LookupError(f\"{len(%s)} of %s have %s \" + repr(%s))", name, s.list, s.by, s.value),
			fmt.Sprintf("%s = %s[0]", name, name),
		}
	}
	return out
}

func (s source) expression(name string) string { return name + "[" + python(s.member) + "]" }
