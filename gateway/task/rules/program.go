package rules

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// arg is an argument: a value, or an expression of the program.
type arg struct {
	name  string
	value json.RawMessage
	expr  string
}

// step is a call of a program. name is the variable of its result, then are further lines.
type step struct {
	tool tool.Tool
	args []arg
	name string
	then []string
}

// program writes a program that makes the calls and ends with the value of the last one.
func program(steps []step, missing []string) string {
	var b strings.Builder
	for _, id := range imports(steps) {
		fmt.Fprintf(&b, "from servers.%s import %s\n", id.Upstream, id.Name)
	}
	b.WriteString("\n")
	for i, s := range steps {
		call := s.tool.ID.Name + "(" + arguments(s.args, missing, i == len(steps)-1) + ")"
		if s.name != "" {
			call = s.name + " = " + call
		}
		b.WriteString(call + "\n")
		for _, line := range s.then {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func imports(steps []step) (all []tool.ID) {
	for _, s := range steps {
		if !slices.Contains(all, s.tool.ID) {
			all = append(all, s.tool.ID)
		}
	}
	return all
}

var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// keywords are the words that are no names of arguments in Python.
var keywords = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

func arguments(args []arg, missing []string, last bool) string {
	var all []string
	add := func(name, value string) {
		if plainName.MatchString(name) && !slices.Contains(keywords, name) {
			all = append(all, name+"="+value)
			return
		}
		all = append(all, "**{"+python(name)+": "+value+"}")
	}
	for _, a := range args {
		if a.expr != "" {
			add(a.name, a.expr)
			continue
		}
		var v any
		if json.Unmarshal(a.value, &v) == nil {
			add(a.name, python(v))
		}
	}
	if last {
		for _, name := range missing {
			add(name, "...")
		}
	}
	return strings.Join(all, ", ")
}

// python returns a JSON value as a literal of Python.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, python(one))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case map[string]any:
		var all []string
		for _, name := range sortedKeys(v) {
			all = append(all, python(name)+": "+python(v[name]))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	text, err := sanitize.JSON(v)
	if err != nil {
		return "None"
	}
	return string(text)
}
