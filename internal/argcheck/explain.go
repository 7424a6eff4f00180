package argcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
)

const (
	maxMessages = 3
	maxChoices  = 12 // names or values that one message lists
)

// explainer collects messages about violations: where, what was expected, what was probably meant.
type explainer struct {
	schema, args any // parsed
	printer      *message.Printer
	covered      map[string]bool // paths and names that a message covers
	found        []string
	at           [][]string // the path of each
}

// describe explains the first violations of args.
func describe(err *jsonschema.ValidationError, schema, args json.RawMessage) string {
	f := explainer{printer: message.NewPrinter(language.English), covered: map[string]bool{}}
	_ = json.Unmarshal(schema, &f.schema) // without names there are no suggestions
	_ = json.Unmarshal(args, &f.args)
	f.walk(err)
	return strings.Join(f.found, "; ")
}

func (f *explainer) walk(e *jsonschema.ValidationError) {
	if len(f.found) == maxMessages {
		return
	}
	causes := e.Causes
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		causes = f.likelyBranch(e)
	}
	for _, cause := range causes {
		f.walk(cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	if text := f.text(e); text != "" {
		f.found, f.at = append(f.found, sanitize.Line(pathPrefix(e.InstanceLocation)+text, 300)), append(f.at, e.InstanceLocation)
	}
}

// likelyBranch picks the branch of anyOf or oneOf that was probably meant: not one of another type or with another constant, and of
// the others the one with the fewest violations. If all are of another type, it returns all.
func (f *explainer) likelyBranch(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var best []*jsonschema.ValidationError
	fewest := 0
	for _, cause := range e.Causes {
		n, meant := countViolations(cause, len(e.InstanceLocation))
		if meant && (best == nil || n < fewest) {
			best, fewest = []*jsonschema.ValidationError{cause}, n
		}
	}
	if best == nil {
		return e.Causes
	}
	return best
}

// countViolations counts the violations of a branch for a value at that depth, and reports whether the branch can have been meant.
func countViolations(e *jsonschema.ValidationError, depth int) (n int, meant bool) {
	switch e.ErrorKind.(type) {
	case *kind.Type:
		return 1, len(e.InstanceLocation) > depth
	case *kind.Const:
		return 1, false
	}
	if len(e.Causes) == 0 {
		return 1, true
	}
	meant = true
	for _, cause := range e.Causes {
		more, ok := countViolations(cause, depth)
		n, meant = n+more, meant && ok
	}
	return n, meant
}

// text returns the message for one violation, "" if another message covers it.
func (f *explainer) text(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		if text := f.missing(e, k.Missing); text != "" {
			return text
		}
	case *kind.AdditionalProperties:
		if known := f.properties(e.SchemaURL); len(known) > 0 {
			return f.unknown(e, k.Properties, known)
		}
	case *kind.Enum:
		if text := enumText(k); text != "" {
			return text
		}
	}
	return e.ErrorKind.LocalizedString(f.printer)
}

// missing describes a missing property if a property with a similar name is given, else
// it returns "". At the top level a hint does that.
func (f *explainer) missing(e *jsonschema.ValidationError, names []string) string {
	if len(e.InstanceLocation) == 0 {
		return ""
	}
	given, _ := valueAt(f.args, e.InstanceLocation).(map[string]any)
	known := f.properties(e.SchemaURL)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if near := suggest.Of(name, names); near != "" && !slices.Contains(known, name) {
			f.covered[pathPrefix(e.InstanceLocation)+name] = true
			return fmt.Sprintf("missing property %q, got %q: did you mean %s?", near, sanitize.Line(name, 80), near)
		}
	}
	return ""
}

// unknown describes properties that a schema forbids, and those that it has instead.
func (f *explainer) unknown(e *jsonschema.ValidationError, names, known []string) string {
	slices.Sort(names)
	var parts []string
	for _, name := range names[:min(len(names), maxMessages)] {
		if f.covered[pathPrefix(e.InstanceLocation)+name] {
			continue
		}
		text := fmt.Sprintf("unknown property %q", sanitize.Line(name, 80))
		if near := suggest.Of(name, known); near != "" {
			text += ": did you mean " + near + "?"
		} else {
			text += ", it has " + joinNames(known)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// enumText describes a string that is not one of the allowed ones, "" if the value or an allowed one is not a string.
func enumText(k *kind.Enum) string {
	got, ok := k.Got.(string)
	var want []string
	for _, v := range k.Want {
		if s, isText := v.(string); isText {
			want = append(want, s)
		}
	}
	if !ok || len(want) < len(k.Want) {
		return ""
	}
	text := fmt.Sprintf("got %q, want one of %s", sanitize.Line(got, 60), joinNames(want))
	if near := suggest.Of(got, want); near != "" {
		text = fmt.Sprintf("got %q: did you mean %q? It is one of %s", sanitize.Line(got, 60), near, joinNames(want))
	}
	return text
}

func joinNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxChoices)], ", ")
	if len(names) > maxChoices {
		text += fmt.Sprintf(" and %d more", len(names)-maxChoices)
	}
	return text
}

// properties returns the sorted names of the properties at a location of the schema.
func (f *explainer) properties(schemaAt string) []string {
	pointer, ok := strings.CutPrefix(schemaAt, schemaURL+"#")
	if !ok {
		return nil
	}
	var path []string
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if plainPart, err := url.PathUnescape(part); err == nil {
			part = plainPart
		}
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	if pointer == "" {
		path = nil
	}
	schema, _ := valueAt(f.schema, path).(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// valueAt follows a path into a JSON value, nil where it leads nowhere.
func valueAt(v any, path []string) any {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func pathPrefix(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return strings.Join(path, ".") + ": "
}
