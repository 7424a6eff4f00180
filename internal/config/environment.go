package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"sallyport/internal/imageref"
	"sallyport/internal/reference"
	"sallyport/internal/weburl"
	"sallyport/internal/yamlstrict"
)

// DefaultEnvironment is the environment of executions that select none. It need not be in the file.
const DefaultEnvironment = "default"

var (
	// requirement is a name, extras and versions, as in PEP 508 without its URLs and markers.
	requirement = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])? *(\[[A-Za-z0-9._, -]*\])? *((==|~=|!=|<=?|>=?) *[A-Za-z0-9.*+!_-]+ *(, *(==|~=|!=|<=?|>=?) *[A-Za-z0-9.*+!_-]+ *)*)?$`)
	// nodePackage is a name, perhaps with a scope, and a version or range without spaces.
	nodePackage = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*(@[A-Za-z0-9^~<>=*][A-Za-z0-9^~<>=*.+_-]*)?$`)
)

func (d *decoder) environments(at path, n *yaml.Node, c *Config) {
	c.Environments = map[string]Environment{}
	d.Each(at, n, func(at path, key, value *yaml.Node) {
		var e Environment
		d.environment(at, value, &e)
		c.Environments[key.Value] = e
	})
}

func (d *decoder) environment(at path, n *yaml.Node, e *Environment) {
	d.Fields(at, n, []key{
		{"description", d.Text(&e.Description)},
		{"image", d.Text(&e.Image)},
		{"root", d.path(&e.Root)},
		{"python", func(at path, n *yaml.Node) { d.pythonPackages(at, n, &e.Python) }},
		{"typescript", func(at path, n *yaml.Node) { d.nodePackages(at, n, &e.TypeScript) }},
		{"install", install(d, &e.Install, &e.Keep)},
	})
	if e.Image != "" || e.Root != "" {
		return // interpreters are inside
	}
	for _, program := range []*string{&e.Python.Interpreter, &e.TypeScript.Interpreter} {
		if strings.ContainsRune(*program, filepath.Separator) {
			*program = reference.Absolute(d.dir, *program)
		}
	}
}

// install reads whether models may install packages, and whether these are kept.
func install(d *decoder, allowed, keep *bool) reader {
	return func(at path, n *yaml.Node) {
		if *keep = n.Tag == "!!str" && n.Value == "keep"; *keep {
			*allowed = true
			return
		}
		if n.Tag != "!!bool" && !d.Bad(at) {
			d.Fail(at, n, "%s must be true, false or keep", label(at))
			return
		}
		*allowed = strings.EqualFold(n.Value, "true")
	}
}

func (d *decoder) pythonPackages(at path, n *yaml.Node, p *PythonPackages) {
	d.Fields(at, n, []key{
		{"interpreter", d.Text(&p.Interpreter)},
		{"base", d.path(&p.Base)},
		{"requirements", d.Texts(&p.Requirements)},
		{"index", d.Text(&p.Index)},
		{"source", scalar(d, &p.Source, yamlstrict.Bool)},
	})
}

func (d *decoder) nodePackages(at path, n *yaml.Node, p *NodePackages) {
	d.Fields(at, n, []key{
		{"interpreter", d.Text(&p.Interpreter)},
		{"packages", d.Texts(&p.Packages)},
		{"registry", d.Text(&p.Registry)},
	})
}

func (c *Config) environmentProblems(at path) []problem {
	var all []problem
	if c.Sandbox.Remote != "" && c.Sandbox.Remote != RemoteWorkers && len(c.Environments) > 0 {
		all = append(all, problem{at: at, onKey: true, message: `"environments" are made on this machine, and with "remote" under "sandbox" programs run on another one: leave out one of the two`})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environments)) {
		under := at.To(name)
		if !upstreamName.MatchString(name) {
			all = append(all, problem{at: under, onKey: true, message: fmt.Sprintf(`%.40q cannot name an environment: a letter, then letters, digits, "-" and "_", at most 64`, name)})
		}
		if e := onlyAllowed(c.Environments[name]); c.Sandbox.Remote == RemoteWorkers && !reflect.DeepEqual(c.Environments[name], e) {
			all = append(all, problem{at: under, onKey: true, message: `with "remote: workers" under "sandbox", workers make environments (sallyport worker --environments FILE): leave all but "description" and "install" out`})
		}
		all = append(all, c.Environments[name].problems(under)...)
	}
	return all
}

// onlyAllowed returns what a gateway may set of an environment on workers.
func onlyAllowed(e Environment) Environment {
	return Environment{Description: e.Description, Install: e.Install, Keep: e.Keep}
}

func (e Environment) problems(at path) []problem {
	all := slices.Concat(e.rootProblems(at), e.Python.problems(at.To("python")), e.TypeScript.problems(at.To("typescript")))
	if utf8.RuneCountInString(e.Description) > maxDescription {
		all = append(all, problem{at: at.To("description"), message: fmt.Sprintf("a description is a few words for a model, at most %d characters", maxDescription)})
	}
	return all
}

// rootProblems returns problems of image and root, and conflicts with other keys.
func (e Environment) rootProblems(at path) []problem {
	var all []problem
	add := func(at path, message string) { all = append(all, problem{at: at, message: message}) }
	switch {
	case e.Image != "" && e.Root != "":
		add(at.To("root"), `an environment has an "image" or a "root"; keep one of them`)
	case e.Image != "" && !imageref.Pinned(e.Image):
		add(at.To("image"), `an image is pinned by its digest: NAME@sha256:DIGEST, which "docker buildx imagetools inspect NAME" or "crane digest NAME" prints`)
	}
	if e.Root != "" && !filepath.IsAbs(e.Root) {
		add(at.To("root"), "the directory must be absolute")
	}
	all = append(all, noNUL(at.To("root"), e.Root)...)
	if e.Image == "" && e.Root == "" {
		return all
	}
	return append(all, e.insideProblems(at)...)
}

// insideProblems returns problems of settings inside an image or a root.
func (e Environment) insideProblems(at path) []problem {
	var all []problem
	python, typescript := at.To("python"), at.To("typescript")
	add := func(wrong bool, at path, message string) {
		if wrong {
			all = append(all, problem{at: at, message: message})
		}
	}
	outside := func(path string) bool { return path != "" && !strings.HasPrefix(path, "/") }
	const absolute = `in an "image" or a "root" an interpreter is an absolute path inside of it`
	add(outside(e.Python.Interpreter), python.To("interpreter"), absolute)
	add(outside(e.TypeScript.Interpreter), typescript.To("interpreter"), absolute)
	add(e.Python.Base != "", python.To("base"), `a "base" is of the host, so it cannot be had with an "image" or a "root"`)
	return all
}

// HasPattern reports whether Base is a pattern of several folders.
func (p PythonPackages) HasPattern() bool { return strings.ContainsAny(p.Base, "*?[") }

func (p PythonPackages) problems(at path) []problem {
	all := slices.Concat(noNUL(at.To("interpreter"), p.Interpreter), noNUL(at.To("base"), p.Base), indexProblems(at.To("index"), p.Index))
	if p.Base != "" && p.Interpreter != "" {
		all = append(all, problem{at: at.To("interpreter"), message: `a "base" brings its own interpreter; keep one of them`})
	}
	if p.Base != "" && !filepath.IsAbs(p.Base) {
		all = append(all, problem{at: at.To("base"), message: "the directory must be absolute"})
	}
	if _, err := filepath.Match(p.Base, ""); err != nil {
		all = append(all, problem{at: at.To("base"), message: `it is not a pattern: "*", "?" and [a-z] are special, as in "/srv/venvs/*"`})
	}
	for i, r := range p.Requirements {
		if !requirement.MatchString(r) {
			all = append(all, problem{at: at.To("requirements").Item(i), message: `a requirement is a package and its versions, as in "pandas==2.2.3"; no URLs, no paths, no options`})
		}
	}
	return all
}

func (p NodePackages) problems(at path) []problem {
	all := slices.Concat(noNUL(at.To("interpreter"), p.Interpreter), indexProblems(at.To("registry"), p.Registry))
	for i, name := range p.Packages {
		if !nodePackage.MatchString(name) {
			all = append(all, problem{at: at.To("packages").Item(i), message: `a package is a name and its version, as in "zod@3.25.0"; no URLs, no paths, no options`})
		}
	}
	return all
}

// indexProblems never shows a part of the URL: it may hold a password.
func indexProblems(at path, text string) []problem {
	if text == "" || weburl.IsSecure(text) && !strings.ContainsAny(text, "?#") {
		return nil
	}
	return []problem{{at: at, message: label(at) + " is an https:// URL without a user, ? and #; http:// is for this machine only"}}
}
