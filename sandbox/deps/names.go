package deps

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// maxPackages is how many packages a request may name.
const maxPackages = 100

//go:embed stdlib.txt
var stdlib string

var (
	separators = regexp.MustCompile(`[-_.]+`)

	// requirement is the accepted part of PEP 508: name[extras] and version specifiers.
	requirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)[ \t]*` +
		`(?:\[[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*(?:[ \t]*,[ \t]*[A-Za-z0-9][A-Za-z0-9._-]*)*)[ \t]*\])?[ \t]*` +
		`((?:` + specifier + `(?:[ \t]*,[ \t]*` + specifier + `)*)?)[ \t]*$`)

	// npmRequirement is name@range or @scope/name@range; npmRange matches the range.
	npmRequirement = regexp.MustCompile(`^((?:@[a-z0-9][a-z0-9._~-]{0,98}/)?[A-Za-z0-9][A-Za-z0-9._~-]{0,98})(?:@(.+))?$`)
	npmRange       = regexp.MustCompile(`^(?:` + comparator + `(?:(?: +| *\|\| *| - )` + comparator + `)*|[a-z][a-z0-9-]{0,40})$`)
)

const (
	specifier  = `(?:==|!=|<=|>=|<|>|~=)[ \t]*[A-Za-z0-9][A-Za-z0-9._!+*-]{0,63}`
	comparator = `(?:[\^~]|[<>]=?|=)? ?v?(?:[0-9]{1,9}|[xX*])(?:\.(?:[0-9]{1,15}|[xX*])){0,2}(?:-[0-9A-Za-z.-]{1,64})?(?:\+[0-9A-Za-z.-]{1,64})?`
)

// isReservedModule reports whether name is reserved for the import of wrappers and skills.
func isReservedModule(name string) bool {
	return name == "servers" || name == "skills" || name == "sallyport"
}

// isStdlib reports whether Python's standard library has a module of that name.
func isStdlib(module string) bool { return slices.Contains(strings.Fields(stdlib), module) }

// canonical returns the normalized name of a Python package (PEP 503).
func canonical(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// parsedRequirement is one parsed requirement.
type parsedRequirement struct {
	name string // canonical for Python
	text string // as passed to pip or npm, without spaces for Python
	spec string // the range for npm, "*" where none was given
}

// Check validates the packages of a request. Errors wrap ErrRefused, and explain to
// the author what is wrong.
func Check(interpreter sandbox.Interpreter, packages []string) error {
	_, err := parseRequirements(interpreter, packages)
	return err
}

// parseRequirements parses requirements, and returns them sorted by name.
func parseRequirements(interpreter sandbox.Interpreter, packages []string) ([]parsedRequirement, error) {
	if len(packages) == 0 || len(packages) > maxPackages {
		return nil, fmt.Errorf("%w: name 1 to %d packages, not %d", ErrRefused, maxPackages, len(packages))
	}
	read := parsePython
	if interpreter == sandbox.Node {
		read = parseNPM
	}
	var all []parsedRequirement
	for _, text := range packages {
		w, why := parsedRequirement{}, invalidReason(text)
		if why == "" {
			w, why = read(strings.TrimSpace(text))
		}
		if why == "" && slices.ContainsFunc(all, func(other parsedRequirement) bool { return other.name == w.name }) {
			why = "it is named twice"
		}
		if why != "" {
			return nil, fmt.Errorf("%w: %q: %s", ErrRefused, sanitize.Line(text, 80), why)
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b parsedRequirement) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// invalidReason returns why text cannot be a requirement at all, "" if it can.
func invalidReason(text string) string {
	switch {
	case len(text) > 300:
		return "it is too long"
	case strings.HasPrefix(strings.TrimSpace(text), "-"):
		return "options are not accepted; the operator sets the index"
	case strings.ContainsAny(text, "\r\n\x00\\'\"$`"):
		return "it has invalid characters"
	case strings.Contains(text, ";"):
		return "markers are not accepted: name what this environment needs"
	case strings.Contains(text, "://") || strings.Contains(text, " @ ") || strings.Contains(strings.ToLower(text), "file:"):
		return "URLs and paths are not accepted, only names that the index has"
	}
	return ""
}

func parsePython(text string) (parsedRequirement, string) {
	parts := requirement.FindStringSubmatch(text)
	if parts == nil {
		return parsedRequirement{}, "write name, name==1.2.3 or name[extra]>=1,<2"
	}
	name := canonical(parts[1])
	if module := strings.ReplaceAll(name, "-", "_"); isStdlib(module) {
		return parsedRequirement{}, "Python has it built in: import it, without installing"
	} else if isReservedModule(module) {
		return parsedRequirement{}, "the name is taken by what programs import here"
	}
	text = name
	if parts[2] != "" {
		text += "[" + stripSpaces(parts[2]) + "]"
	}
	return parsedRequirement{name: name, text: text + stripSpaces(parts[3]), spec: stripSpaces(parts[3])}, ""
}

func stripSpaces(s string) string { return strings.Join(strings.Fields(s), "") }

func parseNPM(text string) (parsedRequirement, string) {
	parts := npmRequirement.FindStringSubmatch(text)
	if parts == nil {
		return parsedRequirement{}, "write name, name@1.2.3 or @scope/name@^1.2"
	}
	name, spec := parts[1], strings.TrimSpace(parts[2])
	switch lower := strings.ToLower(spec); {
	case isReservedModule(strings.ToLower(name)) || name == "node_modules" || name == "favicon.ico":
		return parsedRequirement{}, "the name is taken by what programs import here"
	case isBuiltin(name):
		return parsedRequirement{}, "node has it built in: import it, without installing"
	case spec == "":
		return parsedRequirement{name: name, text: name, spec: "*"}, ""
	case strings.HasSuffix(lower, ".tgz") || strings.HasSuffix(lower, ".tar") || strings.HasSuffix(lower, ".gz") || !npmRange.MatchString(spec):
		return parsedRequirement{}, "after @ write a version, a range (^1.2, >=1 <3) or a tag (latest)"
	}
	return parsedRequirement{name: name, text: name + "@" + spec, spec: spec}, ""
}

// builtins are node's modules that can be imported without "node:".
const builtins = " assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs http http2 https " +
	"inspector module net os path perf_hooks process punycode querystring readline repl stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib "

func isBuiltin(name string) bool { return strings.Contains(builtins, " "+name+" ") }
