package commandtool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"sallyport/internal/tool"
)

const (
	maxArguments = 1 << 20  // bytes of the JSON of a call: what the schema is checked for
	maxArgument  = 96 << 10 // bytes of one argument of a program; the system allows 128 KiB
	maxTotal     = 1 << 20  // bytes of all
	maxCount     = 4096     // arguments
	maxNumber    = 40       // characters
)

// Invocation is one run of a program.
type Invocation struct {
	// Args are its arguments, without the program itself.
	Args []string
	// Stdin is its input.
	Stdin string
}

// Expand returns the run of a call. The error is a [*tool.Error] that says which argument is wrong.
func (c *Command) Expand(arguments json.RawMessage) (Invocation, error) {
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	if len(arguments) > maxArguments {
		return Invocation{}, invalid("the arguments have more than %d bytes", maxArguments)
	}
	if err := c.check.CheckAll(arguments); err != nil {
		return Invocation{}, err
	}
	values, err := c.values(arguments)
	if err != nil {
		return Invocation{}, err
	}
	var in Invocation
	size := 0
	for _, e := range c.run[1:] {
		made, err := c.fill(e, values)
		if err != nil {
			return Invocation{}, err
		}
		for _, one := range made {
			size += len(one) + 1
		}
		if in.Args = append(in.Args, made...); len(in.Args) > maxCount || size > maxTotal {
			return Invocation{}, invalid("the command line would have more than %d arguments or %d bytes", maxCount, maxTotal)
		}
	}
	in.Stdin, _ = c.join(c.stdin, values)
	return in, nil
}

func invalid(format string, args ...any) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(format, args...)}
}

// values returns the texts of the parameters that have a value.
func (c *Command) values(arguments json.RawMessage) (map[string][]string, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil {
		return nil, invalid("arguments must be one JSON object")
	}
	all := map[string][]string{}
	for name, p := range c.parameters {
		raw, ok := given[name]
		if !ok {
			raw = p.otherwise
		}
		if raw == nil {
			continue
		}
		texts, err := p.values(name, raw)
		if err != nil {
			return nil, err
		}
		all[name] = texts
	}
	return all, nil
}

// values returns the texts of a value, which must have the type of the parameter.
func (p parameter) values(name string, raw json.RawMessage) ([]string, error) {
	items := []json.RawMessage{raw}
	if p.list && (json.Unmarshal(raw, &items) != nil || items == nil) {
		return nil, invalid("%s must be a list", name)
	}
	texts := make([]string, len(items))
	for i, item := range items {
		text, ok := p.text(bytes.TrimSpace(item))
		if !ok {
			return nil, invalid("%s has a value that is no %s", name, p.kind)
		}
		if strings.ContainsRune(text, 0) {
			return nil, invalid("%s has a NUL byte, which no program can be given", name)
		}
		texts[i] = text
	}
	return texts, nil
}

// text returns the text of a plain value, false if it is not of the type.
func (p parameter) text(raw []byte) (text string, ok bool) {
	switch {
	case len(raw) == 0:
		return "", false
	case p.kind == "string":
		return text, raw[0] == '"' && json.Unmarshal(raw, &text) == nil
	case p.kind == "boolean":
		text = string(raw)
		return text, text == "true" || text == "false"
	}
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || len(raw) > maxNumber {
		return "", false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return "", false
	}
	if p.kind == "integer" && bytes.ContainsAny(raw, ".eE") { // 10.0 is a whole number
		return strconv.FormatFloat(n, 'f', -1, 64), n == math.Trunc(n) && math.Abs(n) < 1<<53
	}
	return string(raw), true
}

// fill returns the arguments of an element: exactly one, unless it is a whole parameter.
func (c *Command) fill(e element, values map[string][]string) ([]string, error) {
	name := e.whole()
	p := c.parameters[name]
	texts, set := values[name]
	switch {
	case name == "":
		text, complete := c.join(e, values)
		if !complete {
			return nil, nil
		}
		return c.checked(e, c.leading(e, values), text)
	case !set || p.kind == "boolean" && p.flag != "" && texts[0] != "true":
		return nil, nil
	case p.kind == "boolean" && p.flag != "":
		return []string{p.flag}, nil
	}
	var all []string
	for _, text := range texts {
		made, err := c.option(e, name, text)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

// option returns a value of a parameter, with its flag if it has one.
func (c *Command) option(e element, name, text string) ([]string, error) {
	flag := c.parameters[name].flag
	if strings.HasSuffix(flag, "=") {
		return c.checked(e, nil, flag+text)
	}
	made, err := c.checked(e, []string{name}, text)
	if err == nil && flag != "" {
		made = []string{flag, text}
	}
	return made, err
}

// leading returns the parameters that decide how the text of an element begins.
func (c *Command) leading(e element, values map[string][]string) (names []string) {
	for _, p := range e.pieces {
		if p.parameter != "" {
			names = append(names, p.parameter)
		}
		if p.text != "" || strings.Join(values[p.parameter], "") != "" {
			break
		}
	}
	return names
}

// checked returns an argument as a list of one. If parameters decide how it begins, it must not be an option without their permission.
func (c *Command) checked(e element, leading []string, text string) ([]string, error) {
	if len(text) > maxArgument {
		return nil, invalid("an argument of the program would have more than %d bytes", maxArgument)
	}
	for _, name := range leading {
		if strings.HasPrefix(text, "-") && !e.afterDashes && !c.parameters[name].allowDash {
			return nil, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(`%s must not begin with "-": the program would take it for an option`, name),
				Hint: `for a file write "./" before its name`}
		}
	}
	return []string{text}, nil
}

// join returns the text of an element, false if a parameter has no value.
func (c *Command) join(e element, values map[string][]string) (string, bool) {
	var b strings.Builder
	for _, p := range e.pieces {
		b.WriteString(p.text)
		if p.parameter == "" {
			continue
		}
		texts, set := values[p.parameter]
		if !set {
			return "", false
		}
		b.WriteString(strings.Join(texts, ""))
	}
	return b.String(), true
}
