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
	return o.hasAny("if", "dependentSchemas", "dependencies", "dependentRequired", conditionsKey)
}

// collectConditions moves the conditions of a schema into its list under whens, so that merging
// schemas concatenates their conditions.
func collectConditions(o *object) *object {
	list := conditions(o)
	if len(list) == 0 || len(list) == len(o.list(conditionsKey)) {
		return o
	}
	o = o.clone("if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies")
	o.set(conditionsKey, list)
	return o
}

// conditions returns all conditions of a schema as schemas with if, then and else.
func conditions(o *object) []any {
	list := o.list(conditionsKey)
	if o.has("if") {
		when := &object{}
		for _, key := range []string{"if", "then", "else"} {
			when.set(key, o.get(key))
		}
		list = append(slices.Clip(list), when)
	}
	for _, key := range []string{"dependentSchemas", "dependentRequired", "dependencies"} {
		dependents := o.object(key)
		for _, name := range dependents.members() {
			list = append(slices.Clip(list), dependentCondition(name, dependents.get(name)))
		}
	}
	return list
}

// dependentCondition returns the condition "if name is present, then" as a schema.
func dependentCondition(name string, then any) *object {
	present, when := &object{}, &object{}
	present.set("required", []any{name})
	if names, ok := then.([]any); ok {
		needs := &object{}
		needs.set("required", names)
		then = needs
	}
	when.set("if", present)
	when.set("then", then)
	return when
}

// withConditions adds the members that only conditions name, as optional members.
// Their type is that of then or else, and any if only the if names them.
func withConditions(o *object) *object {
	list := conditions(o)
	if len(list) == 0 || !containsValue(typesOf(o), "object") {
		return o
	}
	props, found := o.object("properties"), &object{}
	for _, when := range list {
		w, _ := when.(*object)
		for _, key := range []string{"then", "else", "if"} {
			branch := w.object(key)
			if branch.hasAny("allOf", "anyOf", "oneOf", "$ref", "if") {
				o = allowAdditional(o)
			}
			addConditional(found, props, branch, key == "if")
		}
	}
	if len(found.keys) == 0 {
		return o
	}
	all := props.clone()
	for _, name := range found.keys {
		all.set(name, found.get(name))
	}
	o = o.clone()
	o.set("properties", all)
	return o
}

func addConditional(found, props, branch *object, test bool) {
	more := branch.object("properties")
	for _, name := range more.members() {
		switch {
		case props.has(name):
		case test && !found.has(name):
			found.set(name, true)
		case !test && found.has(name):
			found.set(name, either(found.get(name), more.get(name)))
		case !test:
			found.set(name, more.get(name))
		}
	}
	for _, name := range branch.strings("required") {
		if !props.has(name) && !found.has(name) {
			found.set(name, true)
		}
	}
}

// conditionNotes describes conditions in words: `b needs a`, `kind "x" needs a, b`.
func conditionNotes(o *object) []string {
	var notes []string
	for _, when := range conditions(o) {
		w, _ := when.(*object)
		test, then := conditionText(w.object("if")), w.object("then").strings("required")
		if test == "" || len(then) == 0 {
			continue
		}
		if len(notes) == maxConditions {
			return append(notes, "and more conditions")
		}
		notes = append(notes, test+" needs "+nameList(then))
	}
	if o.has("not") || len(notes) < len(conditions(o)) {
		notes = append(notes, "further conditions apply")
	}
	return notes
}

// maxConditions is how many conditions of one schema are described.
const maxConditions = 8

// conditionText describes an if: members with certain values, or present members. It returns "" for anything else.
func conditionText(o *object) string {
	var parts []string
	props := o.object("properties")
	for _, name := range props.members() {
		prop, _ := props.get(name).(*object)
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
	for _, name := range o.strings("required") {
		if !props.has(name) {
			parts = append(parts, showText(name))
		}
	}
	if len(parts) > 3 || o.hasAny("allOf", "anyOf", "oneOf", "not", "$ref") {
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
