package candidate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/suggest"
)

// maxInputs bounds the arguments, variables and headers of a server.
const maxInputs = 64

// withPackage returns the candidate that runs a package.
func (c Candidate) withPackage(p registry.Package) (Candidate, error) {
	if p.RegistryType == kindImage {
		return c.withImage(p)
	}
	if err := checkPackage(p); err != nil {
		return c, err
	}
	c.kind, c.command, c.args = p.RegistryType, "npx", []argument{{parts: literal("-y")}}
	if p.RegistryType == "pypi" {
		c.command, c.args = "uvx", nil
	}
	if err := c.setIndex(p); err != nil {
		return c, err
	}
	c.args = append(c.args, argument{parts: literal(p.Identifier + "@" + p.Version)})
	c.Version = p.Version
	if err := c.addAll(p); err != nil {
		return c, err
	}
	if p.FileSHA256 != "" {
		c.Warnings = append(c.Warnings, "its fileSha256 is not compared; the hashes of the package's registry are")
	}
	c.compareWithKnown(p)
	return c, nil
}

// addAll adds the arguments and variables of a package.
func (c *Candidate) addAll(p registry.Package) error {
	for _, a := range p.PackageArguments {
		if err := c.addArgument(a); err != nil {
			return err
		}
	}
	for _, v := range p.EnvironmentVariables {
		if err := c.addVariable(v); err != nil {
			return err
		}
	}
	return nil
}

func checkPackage(p registry.Package) error {
	why, known := elsewhere[p.RegistryType]
	switch {
	case known:
		return errors.New(why)
	case p.RegistryType != "npm" && p.RegistryType != "pypi":
		return fmt.Errorf("packages of the kind %.20q cannot run here", p.RegistryType)
	case p.Transport.Type != "stdio" && p.Transport.Type != "":
		return fmt.Errorf("it listens at an address (%.20q); start it, and add its URL: sallyport upstreams add NAME --url URL", p.Transport.Type)
	case !registry.IsPackage(p.RegistryType, p.Identifier):
		return fmt.Errorf("%.80q is not the name of a package of %s", p.Identifier, p.RegistryType)
	case !registry.IsVersion(p.Version):
		return fmt.Errorf("%.40q is not a version of a package", p.Version)
	case len(p.PackageArguments) > maxInputs || len(p.EnvironmentVariables) > maxInputs:
		return fmt.Errorf("it has more than %d arguments or variables", maxInputs)
	}
	for _, a := range p.RuntimeArguments {
		if text := a.Name + a.Value; text != "-y" && text != "--yes" {
			return fmt.Errorf("it wants the argument %.40q for %.10s itself, which is not supported", text, p.RuntimeHint)
		}
	}
	return nil
}

// setIndex sets the registry of the package, if it is not the usual one.
func (c *Candidate) setIndex(p registry.Package) error {
	base := strings.TrimRight(p.RegistryBaseURL, "/")
	usual := map[string]string{"npm": registry.NPM, "pypi": registry.PyPI}[p.RegistryType]
	if base == "" || base == usual {
		return nil
	}
	if _, err := parseURL(base, true); err != nil {
		return fmt.Errorf("the registry of its package: %w", err)
	}
	c.index = base
	c.Warnings = append(c.Warnings, "its package is not from the usual registry, but from "+base)
	return nil
}

// compareWithKnown takes the needs of a known package, and warns of one that only looks like a known one.
func (c *Candidate) compareWithKnown(p registry.Package) {
	if known, ok := presets.OfPackage(p.RegistryType, p.Identifier); ok && c.index == "" {
		c.Needs = known.Needs
		return
	}
	names := presets.Packages(p.RegistryType)
	if near := suggest.Of(p.Identifier, names); near != "" && near != p.Identifier {
		c.Warnings = append(c.Warnings, fmt.Sprintf("its package %s is another one than the well-known %s", p.Identifier, near))
	}
}

func literal(text string) []part { return []part{{text: text}} }

// reservedVariables change which program runs or what it loads. A description cannot set them.
var reservedVariables = regexp.MustCompile(`(?i)^(PATH|HOME|SHELL|IFS|ENV|BASH_ENV|LD_.*|DYLD_.*|NODE_OPTIONS|NODE_PATH|NODE_TLS_REJECT_UNAUTHORIZED|NODE_EXTRA_CA_CERTS|NPM_CONFIG_.*|PYTHON(PATH|HOME|STARTUP|INSPECT|WARNINGS|BREAKPOINT)|SSL_CERT_(FILE|DIR)|.*_PROXY|UV_.*|PIP_.*|SALLYPORT_.*)$`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

func (c *Candidate) addVariable(v registry.KeyValue) error {
	switch {
	case !variableName.MatchString(v.Name):
		return fmt.Errorf("%.40q is not the name of a variable", v.Name)
	case reservedVariables.MatchString(v.Name):
		return fmt.Errorf("it sets the variable %s, which would change how programs run", v.Name)
	}
	parts, err := c.template(v.Name, v.Template, false)
	if err == nil {
		c.env = append(c.env, pair{v.Name, parts})
	}
	return err
}

var flagName = regexp.MustCompile(`^-{0,2}[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

func (c *Candidate) addArgument(a registry.Argument) error {
	switch a.Type {
	case "positional":
		name := a.ValueHint
		if name == "" {
			name = fmt.Sprintf("argument%d", len(c.args))
		}
		parts, err := c.template(name, a.Template, a.IsRepeated)
		if err == nil {
			c.args = append(c.args, argument{parts: parts})
		}
		return err
	case "named":
		return c.addNamed(a)
	}
	return fmt.Errorf("%.20q is not a kind of argument", a.Type)
}

func (c *Candidate) addNamed(a registry.Argument) error {
	if !flagName.MatchString(a.Name) {
		return fmt.Errorf("%.40q is not the name of an argument", a.Name)
	}
	name := strings.TrimLeft(a.Name, "-")
	takesNothing := a.Format == "boolean" && a.Value == "" || a.Value == "" && a.Default == "" && a.Placeholder == "" && len(a.Choices) == 0 && len(a.Variables) == 0 && a.Description == "" && !a.IsSecret
	if !takesNothing {
		parts, err := c.template(name, a.Template, a.IsRepeated)
		if err == nil {
			c.args = append(c.args, argument{flag: a.Name, parts: parts})
		}
		return err
	}
	if a.Format == "" && a.Description == "" { // a flag without anything to choose
		c.args = append(c.args, argument{parts: literal(a.Name)})
		return nil
	}
	in := a.Input
	if in.Default == "" {
		in.Default = fmt.Sprint(a.IsRequired)
	}
	in.Format, in.IsRequired = "boolean", false
	err := c.addInput(name, in, false)
	c.Inputs[len(c.Inputs)-1].Flag = err == nil
	c.args = append(c.args, argument{flag: a.Name, parts: []part{{input: name}}, bare: true})
	return err
}

var inBraces = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// template returns the parts of a value: an input of that name, or the fixed value with inputs for its variables.
func (c *Candidate) template(name string, t registry.Template, repeated bool) ([]part, error) {
	if t.Value == "" {
		return []part{{input: name}}, c.addInput(name, t.Input, repeated)
	}
	if err := checkText(t.Value); err != nil {
		return nil, err
	}
	return c.fill(t.Value, func(variable string) (registry.Input, bool) {
		in, ok := t.Variables[variable]
		return in, ok
	})
}

// fill splits a text at the variables in it. One without a description stays text.
func (c *Candidate) fill(text string, find func(name string) (registry.Input, bool)) (parts []part, err error) {
	at := 0
	for _, m := range inBraces.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		in, ok := find(name)
		if !ok {
			continue
		}
		if !slices.ContainsFunc(c.Inputs, func(i Input) bool { return i.Name == name }) {
			if err := c.addVariableInput(name, in); err != nil {
				return nil, err
			}
		}
		if m[0] > at {
			parts = append(parts, part{text: text[at:m[0]]})
		}
		parts = append(parts, part{input: name})
		at = m[1]
	}
	if at < len(text) {
		parts = append(parts, part{text: text[at:]})
	}
	return parts, nil
}

// addVariableInput adds the input of a variable in a text, which has a fixed value, or is needed for the text.
func (c *Candidate) addVariableInput(name string, in registry.Input) error {
	if in.Value != "" {
		in.Default, in.Choices = in.Value, []string{in.Value}
	}
	in.IsRequired = in.IsRequired || in.Default == ""
	return c.addInput(name, in, false)
}

var inputName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,100}$`)

func (c *Candidate) addInput(name string, in registry.Input, repeated bool) error {
	switch {
	case !inputName.MatchString(name):
		return fmt.Errorf("%.40q cannot name a value", name)
	case len(c.Inputs) >= maxInputs:
		return fmt.Errorf("it has more than %d values", maxInputs)
	case slices.ContainsFunc(c.Inputs, func(i Input) bool { return i.Name == name }):
		return fmt.Errorf("it has two values of the name %s", name)
	case len(in.Choices) > maxInputs:
		return fmt.Errorf("the value %s has more than %d choices", name, maxInputs)
	}
	for _, text := range append(slices.Clone(in.Choices), in.Default) {
		if err := checkText(text); err != nil {
			return fmt.Errorf("the value %s: %w", name, err)
		}
	}
	c.Inputs = append(c.Inputs, Input{
		Name: name, Description: in.Description, Required: in.IsRequired && in.Default == "", Secret: in.IsSecret, Path: in.Format == "filepath",
		Repeated: repeated, Default: in.Default, Example: in.Placeholder, Choices: in.Choices,
	})
	return nil
}
