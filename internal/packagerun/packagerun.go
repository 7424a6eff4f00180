// Package packagerun reads command lines that fetch a package from a registry and run a program of it, such as npx PACKAGE. Its main
// function is [Read].
package packagerun

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// The kinds of registries.
const (
	NPM  = "npm"
	PyPI = "pypi"
)

// Run is what such a command line runs.
type Run struct {
	// Kind is the kind of the registry.
	Kind string
	// Packages are requirements, such as pkg@1.2 of npm or pkg==1.2 of PyPI. The program is one of the first.
	Packages []string
	// Bin is the name of the program, "" for the only one of its package.
	Bin string
	// Args are the arguments of the program: the end of the command line.
	Args []string
}

// runner is a program that fetches packages and runs them.
type runner struct {
	kind string
	// words are the program and its subcommand.
	words []string
	// flags are ignored. An option of from names the package of the program, one of with a further package.
	flags, from, with []string
	// requirement translates the positional argument to a requirement; nil keeps it.
	requirement func(string) string
	// greedy: options after the package are its own, unless "--" is before them.
	greedy bool
}

// runners are the programs that are known.
func runners() []runner {
	npm := runner{kind: NPM, flags: []string{"-y", "--yes", "-q", "--quiet", "--bun", "--prefer-offline"}, from: []string{"-p", "--package"}}
	uv := runner{kind: PyPI, flags: []string{"-q", "--quiet", "--no-progress"}, from: []string{"--from"}, with: []string{"-w", "--with"}, requirement: pythonRequirement}
	pipx := runner{kind: PyPI, flags: []string{"-q", "--quiet", "--no-cache"}, from: []string{"--spec"}}
	dlx := runner{kind: NPM, flags: []string{"-s", "--silent", "-q", "--quiet"}, from: []string{"-p", "--package"}}
	exec := npm
	exec.greedy = true
	var all []runner
	for _, one := range []struct {
		runner
		lines []string
	}{{npm, []string{"npx", "bunx", "pnpx", "bun x"}}, {exec, []string{"npm exec", "npm x"}}, {dlx, []string{"pnpm dlx", "yarn dlx"}}, {uv, []string{"uvx", "uv tool run"}}, {pipx, []string{"pipx run"}}} {
		for _, line := range one.lines {
			one.words = strings.Fields(line)
			all = append(all, one.runner)
		}
	}
	return all
}

// Read reads a command line; ok is false for one that fetches no package. The error says which of its options is not known.
func Read(command string, args []string) (run Run, ok bool, err error) {
	words := append([]string{filepath.Base(command)}, args...)
	for _, r := range runners() {
		if n := len(r.words); len(words) >= n && slices.Equal(words[:n], r.words) {
			run, err := r.read(words[n:])
			return run, true, err
		}
	}
	return Run{}, false, nil
}

// Words returns how many of the first words of a command line of a program decide whether it fetches a package, 0 for a program that
// never does.
func Words(command string) (n int) {
	for _, r := range runners() {
		if r.words[0] == filepath.Base(command) {
			n = max(n, len(r.words))
		}
	}
	return n
}

// pythonRequirement returns the requirement that uvx makes of NAME@VERSION.
func pythonRequirement(text string) string {
	name, version, ok := strings.Cut(text, "@")
	if !ok || version == "latest" {
		return name
	}
	return name + "==" + version
}

// read reads options and the first positional argument, which is the program if an option names its package, and a package else.
func (r runner) read(args []string) (Run, error) {
	run := Run{Kind: r.kind}
	var further []string
	marked := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "--" {
			args, marked = args[1:], true
			break
		}
		value, rest, err := r.option(args)
		if err != nil {
			return run, err
		}
		switch name, _, _ := strings.Cut(args[0], "="); {
		case slices.Contains(r.from, name):
			run.Packages = append(run.Packages, value)
		case slices.Contains(r.with, name):
			further = append(further, value)
		}
		args = rest
	}
	if len(args) == 0 {
		return run, invalid(r.name()+" has no package in its arguments", "write "+r.name()+" PACKAGE")
	}
	if len(run.Packages) > 0 {
		run.Bin = args[0]
	} else {
		run.Packages = []string{r.require(args[0])}
	}
	run.Packages = append(run.Packages, further...)
	var err error
	run.Args, err = r.own(args[1:], marked)
	return run, err
}

func (r runner) name() string { return strings.Join(r.words, " ") }

func (r runner) require(text string) string {
	if r.requirement == nil {
		return text
	}
	return r.requirement(text)
}

// own returns the arguments of the program. marked: "--" was before the package.
func (r runner) own(args []string, marked bool) ([]string, error) {
	if !r.greedy || marked {
		return args, nil
	}
	for i, arg := range args {
		switch {
		case arg == "--":
			return slices.Concat(args[:i], args[i+1:]), nil
		case strings.HasPrefix(arg, "-"):
			return nil, invalid(fmt.Sprintf("%s takes the option %.40q for itself", r.name(), arg), "write "+r.name()+" -- PACKAGE ARGUMENTS")
		}
	}
	return args, nil
}

// option reads one option, and its value if it has one.
func (r runner) option(args []string) (value string, rest []string, err error) {
	name, value, inline := strings.Cut(args[0], "=")
	takes := slices.Contains(slices.Concat(r.from, r.with), name)
	switch rest = args[1:]; {
	case takes && inline && value != "", !takes && slices.Contains(r.flags, args[0]):
		return value, rest, nil
	case takes && !inline && len(rest) > 0:
		return rest[0], rest[1:], nil
	}
	return "", nil, invalid(fmt.Sprintf("isolate does not know the option %.40q of %s", args[0], r.name()), "before the package it knows "+strings.Join(slices.Concat(r.flags, r.from, r.with), ", "))
}

func invalid(message, fix string) error {
	return &tool.Error{Kind: tool.Invalid, Message: message + "; " + fix}
}
