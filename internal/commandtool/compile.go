package commandtool

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/argcheck"
	"sallyport/internal/jsonobject"
	"sallyport/internal/packagerun"
)

// Command is a checked declaration. It is safe for concurrent use.
type Command struct {
	Tool
	// Input is the schema of its arguments.
	Input json.RawMessage

	parameters map[string]parameter
	run        []element
	stdin      element
	check      *argcheck.Schema
}

// parameter is an argument of a call.
type parameter struct {
	kind      string // its type; for an array that of its items
	list      bool
	flag      string
	allowDash bool
	otherwise json.RawMessage // the default, nil for none
}

// element is one item of the command line.
type element struct {
	pieces []piece
	// afterDashes: it follows "--", after which programs take no options.
	afterDashes bool
}

// piece is a text, or the value of a parameter.
type piece struct{ text, parameter string }

// whole returns the parameter that is the whole element, "" if it is something else.
func (e element) whole() string {
	if len(e.pieces) != 1 {
		return ""
	}
	return e.pieces[0].parameter
}

func (e element) literal() bool {
	return !slices.ContainsFunc(e.pieces, func(p piece) bool { return p.parameter != "" })
}

// Compile checks a declaration. The error is a [*Fault].
func Compile(t Tool) (*Command, error) {
	c := &Command{Tool: t, parameters: map[string]parameter{}}
	for _, step := range []func() error{c.readParameters, c.readRun, c.readOutput} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c.check = argcheck.Compile(c.Input)
	if !c.check.Checks() {
		return nil, fault([]string{"parameters"}, "the parameters are not valid JSON Schema")
	}
	return c, nil
}

func fault(at []string, format string, args ...any) error {
	return &Fault{at, fmt.Sprintf(format, args...)}
}

var (
	parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	placeholder   = regexp.MustCompile(`\{\{[A-Za-z_][A-Za-z0-9_]*\}\}|\{[A-Za-z_][A-Za-z0-9_]*\}`)
	flagText      = regexp.MustCompile(`^-[A-Za-z0-9?]$|^--?[A-Za-z0-9][A-Za-z0-9_.-]*=?$`)
)

// own are the keys of a parameter that are not of JSON Schema.
var own = []string{"flag", "required", "allow_dash"}

func (c *Command) readParameters() error {
	properties, required := jsonobject.Of(), []any{}
	if len(c.Parameters) > 0 {
		value, err := jsonobject.Decode(c.Parameters, func(int, bool) error { return nil })
		all, ok := value.(*jsonobject.Object)
		if err != nil || !ok {
			return fault([]string{"parameters"}, "the parameters are no mapping")
		}
		for _, name := range all.Keys() {
			one, needed, err := readParameter(name, all.Get(name))
			if err != nil {
				return err
			}
			c.parameters[name] = one
			properties.Set(name, all.Object(name).Clone(own...))
			if needed {
				required = append(required, name)
			}
		}
	}
	schema := jsonobject.Of("type", "object", "properties", properties, "additionalProperties", false)
	if len(required) > 0 {
		schema.Set("required", required)
	}
	data, err := schema.MarshalJSON()
	c.Input = data
	return err
}

var scalars = []string{"string", "integer", "number", "boolean"}

// readParameter reads one parameter, and whether a call needs it.
func readParameter(name string, value any) (p parameter, required bool, err error) {
	at := []string{"parameters", name}
	o, ok := value.(*jsonobject.Object)
	switch {
	case !parameterName.MatchString(name):
		return p, false, fault(at, `%.40q cannot name a parameter: a letter or "_", then letters, digits and "_", at most 64`, name)
	case !ok:
		return p, false, fault(at, "a parameter is a mapping with a type, as in {type: string}")
	}
	p = parameter{kind: o.Text("type"), flag: o.Text("flag"), allowDash: o.Flag("allow_dash")}
	if p.kind == "array" {
		p.list, p.kind = true, o.Object("items").Text("type")
	}
	if !slices.Contains(scalars, p.kind) || p.list && p.kind == "boolean" {
		return p, false, fault(at, "the type of a parameter is string, integer, number, boolean, or array with items of type string, integer or number")
	}
	if err := wrongOwn(at, o, p); err != nil {
		return p, false, err
	}
	required = p.kind != "boolean" && !o.Has("default")
	if o.Has("required") {
		required = o.Flag("required")
	}
	if o.Has("default") {
		p.otherwise, _ = json.Marshal(o.Get("default")) // it was JSON
		if _, err := p.values(name, p.otherwise); err != nil {
			return p, false, fault(append(at, "default"), "the default is not of the type of the parameter")
		}
	}
	return p, required, nil
}

// wrongOwn checks the keys of a parameter that are not of JSON Schema.
func wrongOwn(at []string, o *jsonobject.Object, p parameter) error {
	for _, key := range own[1:] {
		if _, ok := o.Get(key).(bool); o.Has(key) && !ok {
			return fault(append(at, key), "%q must be true or false", key)
		}
	}
	switch {
	case o.Has("flag") && !flagText.MatchString(p.flag):
		return fault(append(at, "flag"), `"flag" is an option of the program, as in -n, --limit or --limit=`)
	case p.kind == "boolean" && strings.HasSuffix(p.flag, "="):
		return fault(append(at, "flag"), `the "flag" of a boolean is given without a value, so it has no "="`)
	}
	return nil
}

// interpreters are programs that run their argument after an option as code.
var interpreters = map[string][]string{
	"-c": {"sh", "bash", "dash", "zsh", "ksh", "busybox", "python", "python3"}, "-e": {"node", "perl", "ruby", "lua"}, "-p": {"node"}, "--eval": {"node"}, "-r": {"php"},
}

func (c *Command) readRun() error {
	if len(c.Run) == 0 || c.Run[0] == "" {
		return fault([]string{"run"}, `"run" needs a program`)
	}
	used, dashes := map[string]bool{}, false
	for i, text := range c.Run {
		at := []string{"run", "[" + strconv.Itoa(i) + "]"}
		e, err := c.parse(at, text, used)
		if err != nil {
			return err
		}
		switch before := c.Run[max(i-1, 0)]; {
		case i == 0 && !e.literal():
			return fault(at, "the program has no placeholder: a call must not choose it")
		case !e.literal() && slices.Contains(interpreters[before], path.Base(c.Run[0])):
			return fault(at, "a placeholder would be code of %s; pass it as an argument of the code", path.Base(c.Run[0]))
		}
		e.afterDashes = dashes
		dashes = dashes || i > 0 && text == "--"
		c.run = append(c.run, e)
	}
	if err := c.readStdin(used); err != nil {
		return err
	}
	for name := range c.parameters {
		if !used[name] {
			return fault([]string{"parameters", name}, "the parameter %s is used nowhere; write {%s} in run or stdin", name, name)
		}
	}
	return c.checkPackage()
}

func (c *Command) readStdin(used map[string]bool) (err error) {
	if c.stdin, err = c.parse([]string{"stdin"}, c.Stdin, used); err != nil {
		return err
	}
	for _, p := range c.stdin.pieces {
		if c.parameters[p.parameter].list || c.parameters[p.parameter].flag != "" {
			return fault([]string{"stdin"}, "{%s} is a list or has a flag, which the input of a program cannot have", p.parameter)
		}
	}
	return nil
}

// parse reads an element, and notes the parameters that it uses.
func (c *Command) parse(at []string, text string, used map[string]bool) (e element, err error) {
	if strings.ContainsRune(text, 0) {
		return e, fault(at, "a NUL byte cannot be given to a program")
	}
	end := 0
	for _, found := range placeholder.FindAllStringIndex(text, -1) {
		whole := text[found[0]:found[1]]
		name := strings.Trim(whole, "{}")
		if _, known := c.parameters[name]; !known && !strings.HasPrefix(whole, "{{") {
			return e, fault(at, "{%.60s} is no parameter; declare it, or write {{%.60[1]s}} for the text itself", name)
		}
		e.add(piece{text: text[end:found[0]]})
		if end = found[1]; strings.HasPrefix(whole, "{{") {
			e.add(piece{text: whole[1 : len(whole)-1]})
			continue
		}
		e.add(piece{parameter: name})
		used[name] = true
	}
	e.add(piece{text: text[end:]})
	if len(e.pieces) > 1 && at[0] == "run" {
		err = c.checkParts(at, e)
	}
	return e, err
}

func (e *element) add(p piece) {
	if p != (piece{}) {
		e.pieces = append(e.pieces, p)
	}
}

// checkParts checks the parameters that fill a part of an argument.
func (c *Command) checkParts(at []string, e element) error {
	for _, p := range e.pieces {
		if one := c.parameters[p.parameter]; one.list || one.flag != "" {
			return fault(at, "{%s} is a list or has a flag, so it must be an item of its own", p.parameter)
		}
	}
	return nil
}

// checkPackage refuses a placeholder before or in the package that is to be fetched and run.
func (c *Command) checkPackage() error {
	run, fetches, err := packagerun.Read(c.Run[0], c.Run[1:])
	ahead := packagerun.Words(c.Run[0])
	switch {
	case err != nil:
		ahead = len(c.Run)
	case fetches:
		ahead = len(c.Run) - len(run.Args)
	}
	for i := 1; i < min(ahead, len(c.Run)); i++ {
		if !c.run[i].literal() {
			return fault([]string{"run", "[" + strconv.Itoa(i) + "]"}, "a placeholder would choose the package that is installed; write the package")
		}
	}
	return nil
}

func (c *Command) readOutput() error {
	if c.Output == "" {
		c.Output = Text
	}
	if len(c.OKExit) == 0 {
		c.OKExit = []int{0}
	}
	switch {
	case len(c.Result) > 0 && c.Output == Text:
		return fault([]string{"result"}, `"result" is the type of JSON: write output: json or output: lines`)
	case len(c.Result) > 0 && !argcheck.Compile(c.Result).Checks():
		return fault([]string{"result"}, "the result is not valid JSON Schema")
	}
	for i, status := range c.OKExit {
		if status < 0 || status > 255 {
			return fault([]string{"ok_exit", "[" + strconv.Itoa(i) + "]"}, "an exit status is from 0 to 255")
		}
	}
	return nil
}
