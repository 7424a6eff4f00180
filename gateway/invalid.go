package gateway

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

	"sallyport/internal/nearest"
	"sallyport/internal/plain"
)

const (
	maxFaults  = 3
	maxChoices = 12 // of names or values that one fault lists
)

// faults words what a check found: where, what was expected, what was probably meant.
type faults struct {
	schema, args any // parsed
	printer      *message.Printer
	said         map[string]bool // places and names that a fault has explained
	found        []string
	at           [][]string // where each is
}

// describeInvalid names the first faults of args.
func describeInvalid(err *jsonschema.ValidationError, schema, args json.RawMessage) string {
	f := faults{printer: message.NewPrinter(language.English), said: map[string]bool{}}
	_ = json.Unmarshal(schema, &f.schema) // what cannot be read here has no names to suggest
	_ = json.Unmarshal(args, &f.args)
	f.walk(err)
	return strings.Join(f.found, "; ")
}

func (f *faults) walk(e *jsonschema.ValidationError) {
	if len(f.found) == maxFaults {
		return
	}
	causes := e.Causes
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		causes = f.branch(e)
	}
	for _, cause := range causes {
		f.walk(cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	if text := f.text(e); text != "" {
		f.found, f.at = append(f.found, plain.Line(place(e.InstanceLocation)+text, 300)), append(f.at, e.InstanceLocation)
	}
}

// branch picks, of the branches that all do not fit, the one that was probably
// meant: not one of another type or with another constant, and then the one with
// the fewest faults. Where each is of another type, all are told.
func (f *faults) branch(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var best []*jsonschema.ValidationError
	fewest := 0
	for _, cause := range e.Causes {
		n, meant := weigh(cause, len(e.InstanceLocation))
		if meant && (best == nil || n < fewest) {
			best, fewest = []*jsonschema.ValidationError{cause}, n
		}
	}
	if best == nil {
		return e.Causes
	}
	return best
}

// weigh counts the faults of a branch for a value at that depth, and reports
// whether it can have been meant.
func weigh(e *jsonschema.ValidationError, depth int) (n int, meant bool) {
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
		more, ok := weigh(cause, depth)
		n, meant = n+more, meant && ok
	}
	return n, meant
}

// text words one fault, "" if another has said it.
func (f *faults) text(e *jsonschema.ValidationError) string {
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

// missing tells of a property that is not there while another with a name much
// like it is, inside of the parameters; those themselves have a hint of their own.
func (f *faults) missing(e *jsonschema.ValidationError, names []string) string {
	if len(e.InstanceLocation) == 0 {
		return ""
	}
	given, _ := valueAt(f.args, e.InstanceLocation).(map[string]any)
	known := f.properties(e.SchemaURL)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if near := nearest.Of(name, names); near != "" && !slices.Contains(known, name) {
			f.said[place(e.InstanceLocation)+name] = true
			return fmt.Sprintf("missing property %q, got %q: did you mean %s?", near, plain.Line(name, 80), near)
		}
	}
	return ""
}

// unknown tells of properties that a schema forbids, and what it has instead.
func (f *faults) unknown(e *jsonschema.ValidationError, names, known []string) string {
	slices.Sort(names)
	var parts []string
	for _, name := range names[:min(len(names), maxFaults)] {
		if f.said[place(e.InstanceLocation)+name] {
			continue
		}
		text := fmt.Sprintf("unknown property %q", plain.Line(name, 80))
		if near := nearest.Of(name, known); near != "" {
			text += ": did you mean " + near + "?"
		} else {
			text += ", it has " + list(known)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// enumText tells of a text that is none of those allowed, "" if it is no text.
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
	text := fmt.Sprintf("got %q, want one of %s", plain.Line(got, 60), list(want))
	if near := nearest.Of(got, want); near != "" {
		text = fmt.Sprintf("got %q: did you mean %q? It is one of %s", plain.Line(got, 60), near, list(want))
	}
	return text
}

func list(names []string) string {
	text := strings.Join(names[:min(len(names), maxChoices)], ", ")
	if len(names) > maxChoices {
		text += fmt.Sprintf(" and %d more", len(names)-maxChoices)
	}
	return text
}

// properties are the names that the schema at a place of ours has, sorted.
func (f *faults) properties(schemaAt string) []string {
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

func place(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return strings.Join(path, ".") + ": "
}
