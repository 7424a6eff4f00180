package flowgen

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxInputs limits the inputs of a draft.
	maxInputs = 32
	// maxInput limits a text that becomes an input, in characters.
	maxInput = 300
)

// inputParams are names of arguments that users probably want to change, and that become inputs.
const inputParams = " branch channel city collection country database date directory email file file_path filename folder from id key language model name owner path project query q recipient repo repository root source subject symbol table target term title to topic uri url user username "

// inputs are the constants of a draft, some of which become inputs.
type inputs struct {
	variables map[string]string // names by values
	all       map[string]*constant
	order     []*constant
}

// constant is a value that is not from a result.
type constant struct {
	value
	param    string
	steps    []string // that use it
	list     bool     // the list of a loop
	name     string   // name of the input that it becomes, "" for none
	parts    []piece  // of a text with inputs in it
	variable string   // the program variable with this value, "" for none
}

func newInputs(variables map[string]json.RawMessage) inputs {
	in := inputs{variables: map[string]string{}, all: map[string]*constant{}}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if v, err := parse(variables[name]); err == nil && v.kind != 't' && v.kind != 'n' {
			in.variables[v.raw] = name
		}
	}
	return in
}

// knows reports whether an argument is an earlier constant or a variable of the program.
func (in *inputs) knows(param string, v value) bool {
	variable, given := in.variables[v.raw]
	c := in.all[v.raw]
	return given && (v.kind == '"' || variable == param || v.distinctive()) || c != nil && (c.param == param || v.distinctive())
}

// constant records the use of a constant.
func (in *inputs) constant(s *step, param string, v value) node {
	return node{constant: in.addUse(s, param, v)}
}

func (in *inputs) addUse(s *step, param string, v value) *constant {
	c := in.all[v.raw]
	if c == nil {
		c = &constant{value: v, param: param, variable: in.variables[v.raw]}
		in.all[v.raw] = c
		in.order = append(in.order, c)
	}
	if !slices.Contains(c.steps, s.id) {
		c.steps = append(c.steps, s.id)
	}
	return c
}

// list records the values of a loop.
func (in *inputs) list(s *step) {
	v, raws := value{kind: '[', items: s.loop.values}, []string{}
	for _, item := range s.loop.values {
		raws = append(raws, item.raw)
	}
	v.raw = "[" + strings.Join(raws, ",") + "]"
	c := in.addUse(s, s.loop.param, v)
	c.list = true
}

// isInput reports whether a constant should become an input.
func (c *constant) isInput() bool {
	switch {
	case c.variable != "" || c.list:
		return true
	case !c.scalar() || utf8.RuneCountInString(c.text) > maxInput || strings.Contains(c.text, "\n") || c.raw == `""`:
		return false
	case c.distinctive() && len(c.steps) > 1:
		return true
	}
	return c.kind == '"' && strings.Contains(inputParams, " "+strings.ToLower(c.param)+" ")
}

var invalidNameChars = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// nameInputs selects the constants that become inputs, and names them.
func (d *drafter) nameInputs() {
	taken := map[string]bool{"in": true, "true": true, "false": true, "null": true, "": true}
	count := 0
	for _, c := range d.inputs.order {
		if count == maxInputs || !c.isInput() {
			continue
		}
		count++
		name := c.variable
		if name == "" {
			name = c.param
			if c.list {
				name = strings.TrimSuffix(name, "s") + "s"
			}
		}
		name = invalidNameChars.ReplaceAllString(name, "_")
		if name == "" || name[0] >= '0' && name[0] <= '9' {
			name = "input_" + name
		}
		name = name[:min(len(name), 56)]
		c.name = name
		for i := 2; taken[c.name]; i++ {
			c.name = name + "_" + strconv.Itoa(i)
		}
		taken[c.name] = true
	}
	d.inputs.bindParts()
}

// bindParts replaces the text of an input in other constants, where it is a whole word, by a reference.
func (in *inputs) bindParts() {
	k := valueIndex{}
	unused := map[string]*constant{} // variables that were not arguments by themselves, by expression
	for raw, name := range in.variables {
		if v, err := parse([]byte(raw)); err == nil && in.all[raw] == nil && v.kind == '"' && utf8.RuneCountInString(v.text) >= minPart && !in.nameTaken(name) {
			unused["inputs."+name] = &constant{value: v, variable: name, name: name}
			k.texts = append(k.texts, seenText{v.text, ref{expr: "inputs." + name}})
		}
	}
	slices.SortFunc(k.texts, func(a, b seenText) int { return strings.Compare(a.expr, b.expr) })
	for _, c := range in.order {
		if c.name != "" && utf8.RuneCountInString(c.text) >= minPart {
			k.texts = append(k.texts, seenText{c.text, ref{expr: "inputs." + c.name}})
		}
	}
	for _, c := range in.order {
		if c.name == "" && c.kind == '"' {
			c.parts = k.splitText(c.text, func(value) bool { return false })
		}
		for _, p := range c.parts {
			if v := unused[p.expr]; v != nil {
				in.order = append(in.order, v)
				delete(unused, p.expr)
			}
		}
	}
}

// nameTaken reports whether an input name is taken or invalid.
func (in *inputs) nameTaken(name string) bool {
	return !plainName.MatchString(name) || name == "in" || name == "true" || name == "false" || name == "null" || slices.ContainsFunc(in.order, func(c *constant) bool { return c.name == name })
}

// schemaType returns the JSON Schema type of an input.
func (c *constant) schemaType() string {
	switch c.kind {
	case '{':
		return "object"
	case '[':
		return "array"
	case '0':
		if strings.ContainsAny(c.raw, ".eE") {
			return "number"
		}
		return "integer"
	}
	return "string"
}
