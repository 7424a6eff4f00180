package codegen

import (
	"slices"
	"strings"
)

// conditionsKey is an internal keyword that holds a schema's conditions while schemas are
// merged: a list of schemas with if, then and else.
const conditionsKey = "\x00when"

// conditional reports whether a schema has conditional constraints.
func conditional(o *object) bool {
	return o.HasAny("if", "dependentSchemas", "dependencies", "dependentRequired", conditionsKey)
}

// collectConditions moves the conditions of a schema into its list under whens, so that merging
// schemas concatenates their conditions.
func collectConditions(o *object) *object {
	list := conditions(o)
	if len(list) == 0 || len(list) == len(o.List(conditionsKey)) {
		return o
	}
	o = o.Clone("if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies")
	o.Set(conditionsKey, list)
	return o
}

// conditions returns all conditions of a schema as schemas with if, then and else.
func conditions(o *object) []any {
	list := o.List(conditionsKey)
	if o.Has("if") {
		when := &object{}
		for _, key := range []string{"if", "then", "else"} {
			when.Set(key, o.Get(key))
		}
		list = append(slices.Clip(list), when)
	}
	for _, key := range []string{"dependentSchemas", "dependentRequired", "dependencies"} {
		dependents := o.Object(key)
		for _, name := range dependents.Keys() {
			list = append(slices.Clip(list), dependentCondition(name, dependents.Get(name)))
		}
	}
	return list
}

// dependentCondition returns the condition "if name is present, then" as a schema.
func dependentCondition(name string, then any) *object {
	present, when := &object{}, &object{}
	present.Set("required", []any{name})
	if names, ok := then.([]any); ok {
		needs := &object{}
		needs.Set("required", names)
		then = needs
	}
	when.Set("if", present)
	when.Set("then", then)
	return when
}

// withConditions adds the members that only conditions name, as optional members.
// Their type is that of then or else, and any if only the if names them.
func withConditions(o *object) *object {
	list := conditions(o)
	if len(list) == 0 || !containsValue(typesOf(o), "object") {
		return o
	}
	props, found := o.Object("properties"), &object{}
	for _, when := range list {
		w, _ := when.(*object)
		for _, key := range []string{"then", "else", "if"} {
			branch := w.Object(key)
			if branch.HasAny("allOf", "anyOf", "oneOf", "$ref", "if") {
				o = allowAdditional(o)
			}
			addConditional(found, props, branch, key == "if")
		}
	}
	if len(found.Keys()) == 0 {
		return o
	}
	all := props.Clone()
	for _, name := range found.Keys() {
		all.Set(name, found.Get(name))
	}
	o = o.Clone()
	o.Set("properties", all)
	return o
}

func addConditional(found, props, branch *object, test bool) {
	more := branch.Object("properties")
	for _, name := range more.Keys() {
		switch {
		case props.Has(name):
		case test && !found.Has(name):
			found.Set(name, true)
		case !test && found.Has(name):
			found.Set(name, either(found.Get(name), more.Get(name)))
		case !test:
			found.Set(name, more.Get(name))
		}
	}
	for _, name := range branch.Texts("required") {
		if !props.Has(name) && !found.Has(name) {
			found.Set(name, true)
		}
	}
}

// conditionNotes describes conditions in words: `b needs a`, `kind "x" needs a, b`.
func conditionNotes(o *object) []string {
	var notes []string
	for _, when := range conditions(o) {
		w, _ := when.(*object)
		test, then := conditionText(w.Object("if")), w.Object("then").Texts("required")
		if test == "" || len(then) == 0 {
			continue
		}
		if len(notes) == maxConditions {
			return append(notes, "and more conditions")
		}
		notes = append(notes, test+" needs "+nameList(then))
	}
	if o.Has("not") || len(notes) < len(conditions(o)) {
		notes = append(notes, "further conditions apply")
	}
	return notes
}

// maxConditions is how many conditions of one schema are described.
const maxConditions = 8

// conditionText describes an if: members with certain values, or present members. It returns "" for anything else.
func conditionText(o *object) string {
	var parts []string
	props := o.Object("properties")
	for _, name := range props.Keys() {
		prop, _ := props.Get(name).(*object)
		values, ok := constants(prop)
		if !ok {
			return ""
		}
		shown := make([]string, 0, 4)
		for _, v := range values[:min(len(values), 4)] {
			shown = append(shown, show(v))
		}
		parts = append(parts, showText(name)+" "+strings.Join(shown, "/"))
	}
	for _, name := range o.Texts("required") {
		if !props.Has(name) {
			parts = append(parts, showText(name))
		}
	}
	if len(parts) > 3 || o.HasAny("allOf", "anyOf", "oneOf", "not", "$ref") {
		return ""
	}
	return strings.Join(parts, " and ")
}

func nameList(names []string) string {
	shown := make([]string, 0, 10)
	for _, name := range names[:min(len(names), 10)] {
		shown = append(shown, showText(name))
	}
	return strings.Join(shown, ", ")
}
