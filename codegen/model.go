package codegen

import (
	"slices"
	"strings"

	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// model turns a tool into the neutral model.
func model(t tool.Tool) function {
	c := newConverter(t.ID.Name)
	var fn function
	c.input(&fn, t)
	fn.result = c.output(t)
	c.learned(&fn, t)
	c.cutCircles()
	fn.defs = reachable(c.defs, fn)
	return fn
}

func (c *converter) output(t tool.Tool) *typ {
	schema, err := decode(t.Output)
	if err != nil {
		return anyType
	}
	c.enter(schema)
	return c.convert(schema, place{hint: "Result"})
}

// input reads the schema of the arguments. One that does not describe an object
// leaves every argument open, and says so.
func (c *converter) input(fn *function, t tool.Tool) {
	schema, err := decode(t.Input)
	c.enter(schema)
	o, ok := schema.(*object)
	switch {
	case err != nil, !ok:
		fn.extra, fn.notes = anyType, []string{"The upstream gave no usable schema: any arguments are passed on."}
		return
	case !canBeObject(o):
		fn.extra, fn.notes = anyType, []string{"The upstream's schema asks for no object: any arguments are passed on."}
		return
	}
	o = c.arguments(c.flatten(o, 0), fn)
	fields := c.fields(o, place{hint: "Arguments"})
	slices.SortStableFunc(fields, func(a, b field) int { return rank(a) - rank(b) })
	fn.params = fields
	fn.extra = c.furtherArguments(o, len(fields))
	fn.notes = append(fn.notes, dependencies(o)...)
}

func rank(f field) int {
	if f.required {
		return 0
	}
	return 1
}

func canBeObject(o *object) bool {
	types := asList(o.get("type"))
	return !o.has("type") || containsValue(types, "object") || o.has("properties")
}

// furtherArguments is the type of arguments without a name. With additionalProperties
// just true beside named ones, as loose validators write it, none are taken, so
// that a misspelt name is found.
func (c *converter) furtherArguments(o *object, named int) *typ {
	more := o.get("additionalProperties")
	if s, ok := more.(*object); ok && len(s.keys) > 0 || o.has("patternProperties") {
		return c.others(o, place{hint: "Extra"})
	}
	cut := named < len(o.object("properties").members())
	if more != false && named == 0 && !o.has("properties") || cut {
		return anyType
	}
	return nil
}

// arguments folds alternatives on the top level into one set of parameters:
// required is then what all of them require.
func (c *converter) arguments(o *object, fn *function) *object {
	for _, key := range []string{"oneOf", "anyOf"} {
		var arms []*object
		for _, arm := range o.list(key) {
			if a, ok := arm.(*object); ok && len(arms) < maxLiterals {
				arms = append(arms, c.flatten(a, 0))
			}
		}
		if len(arms) == 0 {
			continue
		}
		fn.notes = append(fn.notes, alternativesNote(key, arms)...)
		o = fold(o.clone(key), arms)
	}
	return o
}

func fold(o *object, arms []*object) *object {
	props, required := o.object("properties").clone(), arms[0].strings("required")
	for _, arm := range arms {
		more := arm.object("properties")
		for _, name := range more.members() {
			props.set(name, either(props.get(name), more.get(name)))
		}
		required = slices.DeleteFunc(required, func(name string) bool { return !slices.Contains(arm.strings("required"), name) })
	}
	list := slices.Clone(o.list("required"))
	for _, name := range required {
		list = append(list, name)
	}
	o = o.clone("properties", "required")
	o.set("properties", props)
	o.set("required", list)
	return o
}

// either is a schema for what fits one of two.
func either(a, b any) any {
	oa, ok := a.(*object)
	ob, both := b.(*object)
	switch {
	case !ok:
		return b
	case !both || oa == ob:
		return a
	}
	if arms := oa.list("anyOf"); len(arms) > 0 && len(oa.keys) <= 2 {
		oa = oa.clone()
		oa.set("anyOf", append(slices.Clone(arms), b))
		return oa
	}
	o := &object{}
	o.set("anyOf", []any{a, b})
	if text := oa.text("description"); text != "" {
		o.set("description", text)
	}
	return o
}

// alternativesNote says which sets of arguments are allowed.
func alternativesNote(key string, arms []*object) []string {
	var sets []string
	for _, arm := range arms[:min(len(arms), 8)] {
		if names := arm.strings("required"); len(names) > 0 {
			sets = append(sets, plain.Line(strings.Join(names[:min(len(names), 10)], " + "), 200))
		}
	}
	if len(sets) < 2 {
		return nil
	}
	start := "Needs one of: "
	if key == "anyOf" {
		start = "Needs at least one of: "
	}
	return []string{start + strings.Join(sets, " | ")}
}

// dependencies says which arguments ask for others.
func dependencies(o *object) []string {
	var notes []string
	for _, key := range []string{"dependentRequired", "dependencies"} {
		deps := o.object(key)
		for _, name := range deps.members()[:min(len(deps.members()), 8)] {
			if needs := deps.strings(name); len(needs) > 0 {
				notes = append(notes, showText(name)+" needs "+plain.Line(strings.Join(needs[:min(len(needs), 10)], ", "), 200)+".")
			}
		}
	}
	if o.hasAny("if", "not") {
		notes = append(notes, "The upstream checks further conditions.")
	}
	return notes
}

// reachable keeps the definitions that the function refers to.
func reachable(defs []*def, fn function) []*def {
	seen := map[*def]bool{}
	for _, f := range fn.params {
		f.typ.mark(seen)
	}
	fn.result.mark(seen)
	if fn.extra != nil {
		fn.extra.mark(seen)
	}
	return slices.DeleteFunc(defs, func(d *def) bool { return !seen[d] })
}

func (t *typ) mark(seen map[*def]bool) {
	if t.def != nil && !seen[t.def] {
		seen[t.def] = true
		t.def.typ.mark(seen)
	}
	if t.elem != nil {
		t.elem.mark(seen)
	}
	for _, arm := range t.arms {
		arm.mark(seen)
	}
	for _, f := range t.fields {
		f.typ.mark(seen)
	}
}
