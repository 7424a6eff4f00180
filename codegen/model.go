package codegen

import (
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// model converts a tool to the language-neutral model.
func model(t tool.Tool) function {
	c := newConverter(t.ID.Name)
	var fn function
	c.input(&fn, t)
	fn.result = c.output(t)
	c.applyObserved(&fn, t)
	c.breakCycles()
	fn.defs = reachable(c.defs, fn)
	fn.nameSiblings(t.Siblings)
	return fn
}

func (c *converter) output(t tool.Tool) *typ {
	output, _ := t.ResultSchema()
	schema, err := decode(output)
	if err != nil {
		return anyType
	}
	c.enter(schema)
	return c.convert(schema, place{hint: "Result"})
}

// input converts the schema of the arguments. If it does not describe an object, the
// function accepts any arguments and has a note about it.
func (c *converter) input(fn *function, t tool.Tool) {
	schema, err := decode(t.Input)
	c.enter(schema)
	o, ok := schema.(*object)
	switch {
	case err != nil, !ok:
		fn.extra, fn.notes = anyType, []string{"No usable schema: arguments are passed unchecked."}
		return
	case !canBeObject(o):
		fn.extra, fn.notes = anyType, []string{"The schema is not for an object: arguments are passed unchecked."}
		return
	}
	o = withConditions(c.arguments(c.flatten(o, 0), fn, 0))
	fields := c.fields(o, place{hint: "Arguments"})
	slices.SortStableFunc(fields, func(a, b field) int { return rank(a) - rank(b) })
	for i, f := range fields {
		fields[i].typ = parameterType(f.typ)
		if f.typ.kind == numberKind && (isCount(f.name) || f.countsByRange()) {
			fields[i].typ = countType
		}
	}
	fn.params = fields
	fn.extra = c.furtherArguments(o, len(fields))
	for _, note := range memberNotes(o) {
		fn.notes = append(fn.notes, note+".")
	}
}

// nameSiblings replaces the names of the upstream's other tools in the documentation of parameters and members.
func (fn *function) nameSiblings(names map[string]string) {
	if len(names) == 0 {
		return
	}
	rename := func(fields []field) {
		for i := range fields {
			fields[i].doc.text = ProgramNames(fields[i].doc.text, names)
		}
	}
	rename(fn.params)
	for _, d := range fn.defs {
		d.doc.text = ProgramNames(d.doc.text, names)
		rename(d.typ.fields)
	}
}

// isCount reports whether a number is whole, by its name: a page, a limit, a port.
func isCount(name string) bool {
	words := wordPattern.FindAllString(name, 8)
	if len(words) == 0 {
		return false
	}
	first, last := strings.ToLower(words[0]), strings.ToLower(words[len(words)-1])
	return countWords[last] || len(words) > 1 && (last == "number" || amountWords[first] && amounts[last] || first == "page" && last == "size")
}

// countRange matches the note about the range of a port, and of a count that begins at 0 or 1.
var countRange = regexp.MustCompile(`^[01]\.\.([1-9]\d+)$`)

// countsByRange reports whether a number is whole by its range: that of ports, or one from 1 on with a whole default.
func (f field) countsByRange() bool {
	return slices.ContainsFunc(f.doc.notes, func(note string) bool {
		m := countRange.FindStringSubmatch(note)
		return m != nil && (m[1] == "65535" || note[0] == '1' && f.defaultValue != nil && f.defaultValue.kind == intKind)
	})
}

var (
	countWords  = stringSet(strings.Fields("page count limit offset port skip index depth retries"))
	amountWords = stringSet(strings.Fields("max min num top number"))
	amounts     = stringSet(strings.Fields("results items tokens lines pages messages characters chars words rows entries files attempts records hits"))
)

func rank(f field) int {
	if f.required {
		return 0
	}
	return 1
}

func canBeObject(o *object) bool {
	types := asList(o.Get("type"))
	return !o.Has("type") || containsValue(types, "object") || o.Has("properties")
}

// furtherArguments returns the type of unnamed arguments, nil if none are accepted. It
// ignores "additionalProperties": true next to named parameters, so that misspelt
// names are detected.
func (c *converter) furtherArguments(o *object, named int) *typ {
	more := furtherMembers(o)
	if s, ok := more.(*object); ok && len(s.Keys()) > 0 || o.Has("patternProperties") {
		return c.others(o, place{hint: "Extra"})
	}
	cut := named < len(namedMembers(o))
	if more != false && named == 0 && !o.Has("properties") || cut {
		return anyType
	}
	return nil
}

// arguments folds alternatives on the top level into one set of parameters, of which
// those that all alternatives require are required.
func (c *converter) arguments(o *object, fn *function, depth int) *object {
	for _, key := range []string{"oneOf", "anyOf"} {
		arms := c.arms(o.List(key), fn, depth)
		if len(arms) == 0 {
			continue
		}
		if depth == 0 {
			fn.notes = append(fn.notes, alternativesNote(key, arms)...)
		}
		o = fold(o.Clone(key), arms)
	}
	return o
}

// arms returns the alternatives of the arguments, each folded too, without those that
// cannot be objects.
func (c *converter) arms(list []any, fn *function, depth int) []*object {
	var arms []*object
	for _, arm := range list[:min(len(list), maxLiterals)] {
		a, _ := arm.(*object)
		if c.nodes++; c.nodes > maxNodes || depth > maxFlatten || arm == false || !canBeObject(a) {
			continue
		}
		arms = append(arms, withConditions(c.arguments(c.flatten(a, 0), fn, depth+1)))
	}
	return arms
}

func fold(o *object, arms []*object) *object {
	props, required := o.Object("properties").Clone(), arms[0].Texts("required")
	o = o.Clone("required")
	for _, arm := range arms {
		more := arm.Object("properties")
		for _, name := range append(slices.Clone(more.Keys()), missing(arm)...) {
			if base, _ := o.Object("properties").Get(name).(*object); !scalar(base) { // otherwise the base type is enough
				props.Set(name, either(props.Get(name), more.Get(name)))
			}
		}
		required = slices.DeleteFunc(required, func(name string) bool { return !slices.Contains(arm.Texts("required"), name) })
		foldFurther(o, arm)
	}
	list := slices.Clone(o.List("required"))
	for _, name := range required {
		list = append(list, name)
	}
	o.Set("properties", props)
	o.Set("required", list)
	return o
}

// scalar reports whether only values without members fit a schema.
func scalar(o *object) bool {
	types := typesOf(o)
	return len(types) > 0 && !containsValue(types, "object") && !containsValue(types, "array") && !slices.ContainsFunc(types, func(t any) bool {
		_, ok := t.(string)
		return !ok
	})
}

// foldFurther copies the schemas of unnamed members of an alternative to o.
func foldFurther(o, arm *object) {
	if _, ok := furtherMembers(arm).(*object); ok && !o.Has("additionalProperties") {
		o.Set("additionalProperties", furtherMembers(arm))
	}
	if arm.Has("patternProperties") && !o.Has("patternProperties") {
		o.Set("patternProperties", arm.Get("patternProperties"))
	}
}

// either returns a schema for values that fit a or b.
func either(a, b any) any {
	oa, ok := a.(*object)
	ob, both := b.(*object)
	switch {
	case !ok:
		return b
	case !both || oa == ob:
		return a
	}
	if arms := oa.List("anyOf"); len(arms) > 0 && len(oa.Clone("anyOf", "description").Keys()) == 0 {
		oa = oa.Clone()
		oa.Set("anyOf", append(slices.Clone(arms), b))
		return oa
	}
	o := &object{}
	o.Set("anyOf", []any{a, b})
	if text := oa.Text("description"); text != "" {
		o.Set("description", text)
	}
	return o
}

// alternativesNote lists the allowed sets of arguments.
func alternativesNote(key string, arms []*object) []string {
	var sets []string
	for _, arm := range arms[:min(len(arms), 8)] {
		if names := arm.Texts("required"); len(names) > 0 {
			sets = append(sets, sanitize.Line(strings.Join(names[:min(len(names), 10)], " + "), 200))
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
