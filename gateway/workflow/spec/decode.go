package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/suggest"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// To add a key to a definition: the field in spec.go, and one line in the table of its mapping (definition.go, steps.go, form.go),
// from which decoding, the schema for editors and docs/reference/workflow-keys.md are generated.

// decoder decodes the nodes of a file into a Definition.
type decoder struct {
	*yamlstrict.Decoder
	def   *Definition
	files func(name string) ([]byte, error)
	// ids are the lines of the steps by id; steps is the number of steps; depth is the nesting depth of the current step,
	// nesting that of the current value.
	ids                   map[string]int
	steps, depth, nesting int
	// owners are the kinds of steps that have a key, by key; nil for the keys of every step.
	owners map[string][]string
}

// key is a key of a mapping.
type key struct {
	name string
	// shape is the JSON Schema of its values; doc is its description.
	shape, doc string
	read       yamlstrict.Reader
	required   bool
}

// mapping reads a mapping and reports missing keys; what names it, as in "a webhook".
func (d *decoder) mapping(at yamlstrict.Path, n *yaml.Node, what string, keys []key) map[string]bool {
	all := make([]yamlstrict.Key, len(keys))
	for i, k := range keys {
		all[i] = yamlstrict.Key{Name: k.name, Read: k.read}
	}
	seen := d.Fields(at, n, all)
	if n.Kind != yaml.MappingNode || d.Bad(at) || d.Bad(at.Unknown()) {
		return seen
	}
	for _, k := range keys {
		if k.required && !seen[k.name] {
			d.Fail(at, n, "%s needs %q: %s", what, k.name, k.doc)
		}
	}
	return seen
}

// label returns the name of a path for messages.
func label(at yamlstrict.Path) string {
	if len(at) > 1 && strings.HasPrefix(at[len(at)-1], "[") {
		return fmt.Sprintf("an item of %.40q", at[len(at)-2])
	}
	return at.Label()
}

// translateKey translates keys of other workflow languages to the keys of this one, "" for none.
func translateKey(word string) string {
	switch word {
	case "foreach", "forEach", "loop", "each":
		return "for_each"
	case "inputs", "args", "arguments", "params", "parameters", "input":
		return "with"
	case "run", "script":
		return "code"
	case "uses", "call":
		return "tool"
	case "needs", "when", "condition":
		return "if"
	case "triggers", "trigger":
		return "on"
	case "retries":
		return "retry"
	}
	return ""
}

// The shapes of common keys.
const (
	anyShape   = `true`
	textShape  = `{"type":"string"}`
	boolShape  = `{"type":"boolean"}`
	stepsShape = `{"$ref":"#/$defs/steps"}`
	valueShape = `true`
	exprShape  = `{"type":["string","boolean"],"minLength":1}`
	withShape  = `{"anyOf":[{"type":"object"},{"$ref":"#/$defs/expression"}]}`
	listShape  = `{"anyOf":[{"type":"array"},{"$ref":"#/$defs/expression"}]}`
	spanShape  = `{"$ref":"#/$defs/duration"}`
	idShape    = `{"$ref":"#/$defs/identifier"}`
	nameShape  = `{"$ref":"#/$defs/name"}`
)

const (
	identifierPattern = `^[A-Za-z_][A-Za-z0-9_]{0,63}$`
	namePattern       = `^[a-z][a-z0-9_]{0,63}$`
	functionPattern   = `^[A-Za-z_][A-Za-z0-9_]{0,63}\.[A-Za-z_][A-Za-z0-9_]{0,63}$`
	variablePattern   = `^[A-Za-z_][A-Za-z0-9_]{0,127}$`
	durationPattern   = `^(([0-9]+(\.[0-9]+)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$|^[0-9]{1,3}d$`
	wholePattern      = `^\$\{\{[\s\S]*\}\}$`
)

var (
	identifier      = regexp.MustCompile(identifierPattern)
	workflowName    = regexp.MustCompile(namePattern)
	function        = regexp.MustCompile(functionPattern)
	variable        = regexp.MustCompile(variablePattern)
	duration        = regexp.MustCompile(durationPattern)
	wholeExpression = regexp.MustCompile(wholePattern)
)

// celLiterals are names that CEL always parses as something else.
var celLiterals = []string{"in", "true", "false", "null"}

// name reads a text that matches a pattern; what describes it.
func (d *decoder) name(into *Text, pattern *regexp.Regexp, what string) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.IsText(at, n) {
			return
		}
		*into = d.textOf(n)
		if !pattern.MatchString(n.Value) {
			d.Fail(at, n, "%.60q cannot be %s", n.Value, what)
		}
	}
}

const identifierRule = "letters, digits and \"_\", not first a digit, at most 64"

// isIdentifier reports whether expressions can use a key or id, and fails if not.
func (d *decoder) isIdentifier(at yamlstrict.Path, n *yaml.Node, what string) bool {
	switch {
	case !identifier.MatchString(n.Value):
		d.Fail(at, n, "%.60q cannot be %s: %s", n.Value, what, identifierRule)
	case slices.Contains(celLiterals, n.Value):
		d.Fail(at, n, "%q cannot be %s: it is a reserved word of CEL", n.Value, what)
	default:
		return true
	}
	return false
}

// members reads a mapping with user-defined keys.
func (d *decoder) members(at yamlstrict.Path, n *yaml.Node, what string, read func(at yamlstrict.Path, name Text, value *yaml.Node)) {
	if n.Kind == yaml.MappingNode && len(n.Content)/2 > MaxNames {
		d.Fail(at, n, "%s has %d members; at most %d", label(at), len(n.Content)/2, MaxNames)
		return
	}
	d.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) {
		if d.isIdentifier(at, key, what) {
			read(at, d.textOf(key), value)
		}
	})
}

// maxWords limits a text for people and models, in characters.
const maxWords = 1000

const wordsShape = `{"type":"string","maxLength":1000}`

// words reads a text for people and models.
func (d *decoder) words(into *string) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if d.Text(into)(at, n); utf8.RuneCountInString(*into) > maxWords {
			d.Fail(at, n, "%s is too long: at most %d characters", label(at), maxWords)
		}
	}
}

func (d *decoder) bool(into *bool) yamlstrict.Reader {
	return yamlstrict.Scalar(d.Decoder, into, yamlstrict.Bool)
}

// count reads a number within bounds.
func (d *decoder) count(into *int, least, most int) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		yamlstrict.Scalar(d.Decoder, into, yamlstrict.Count)(at, n)
		if !d.Bad(at) && (*into < least || *into > most || !jsonNumber.MatchString(n.Value)) {
			d.Fail(at, n, "%s must be from %d to %d", label(at), least, most)
		}
	}
}

func countShape(least, most int) string {
	return fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, least, most)
}

// longest is the maximum duration.
const longest = 366 * 24 * time.Hour

// span reads a duration.
func (d *decoder) span(into *time.Duration) yamlstrict.Reader {
	return d.spanFrom(into, time.Millisecond)
}

func (d *decoder) spanFrom(into *time.Duration, least time.Duration) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		yamlstrict.Scalar(d.Decoder, into, parseSpan)(at, n)
		if !d.Bad(at) && (*into < least || *into > longest) {
			d.Fail(at, n, "%s must be from %v to 366d", label(at), least)
		}
	}
}

func parseSpan(n *yaml.Node) (time.Duration, string) {
	span, wrong := yamlstrict.Age(n)
	if n.Tag != "!!int" && (wrong != "" || !duration.MatchString(n.Value)) {
		return 0, "is not a duration: write a number and a unit, like 30s, 1h30m or 7d"
	}
	if wrong == "" && n.Tag == "!!int" {
		wrong = "has no unit"
	}
	return span, wrong
}

// shortForm reads a mapping or its short form: scalars with scalar, everything else with other.
func shortForm(scalar, other yamlstrict.Reader) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
			scalar(at, n)
			return
		}
		other(at, n)
	}
}

// enumShape returns the schema of an enumeration.
func enumShape(words ...string) string {
	return fmt.Sprintf(`{"enum":["%s"]}`, strings.Join(words, `","`))
}

// oneOf reads one of a few words; unlike [yamlstrict.Decoder.OneOf], it rejects "".
func (d *decoder) oneOf(into *string, words ...string) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.IsText(at, n) || slices.Contains(words, n.Value) {
			*into = n.Value
			return
		}
		d.Fail(at, n, "%s cannot be %.40q; %s", label(at), n.Value, suggestion(n.Value, words))
	}
}

// suggestion returns a hint that suggests one of a few words, or lists them.
func suggestion(word string, words []string) string {
	if near := suggest.Of(word, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use " + strings.Join(words, ", ")
}
