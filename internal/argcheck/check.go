package argcheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Check returns a *tool.Error that explains what is wrong with args, nil if they match the schema or cannot be checked.
func (s *Schema) Check(args json.RawMessage) error {
	_, err := s.examine(args)
	return err
}

// CheckAll is Check that refuses arguments that cannot be checked, too.
func (s *Schema) CheckAll(args json.RawMessage) error {
	checked, err := s.examine(args)
	if err == nil && !checked {
		return &tool.Error{Kind: tool.Invalid, Message: "the arguments are too large or too deep to be checked"}
	}
	return err
}

// examine returns what Check returns, and whether args could be checked.
func (s *Schema) examine(args json.RawMessage) (checked bool, err error) {
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil || object == nil {
		return true, &tool.Error{Kind: tool.Invalid, Message: "arguments must be one JSON object"}
	}
	names := slices.Sorted(maps.Keys(object))
	if err := s.checkNames(names); err != nil {
		return true, err
	}
	invalid, checked := s.validate(args)
	if invalid == nil {
		return checked, nil
	}
	return true, &tool.Error{Kind: tool.Invalid, Message: "wrong arguments: " + describe(invalid, s.raw, args), Hint: s.hint(s.misspelt(invalid, names))}
}

// checkNames refuses unknown names also where the schema does not set additionalProperties: most servers ignore
// unknown arguments, so a model would not learn of its mistake.
func (s *Schema) checkNames(names []string) error {
	if s.open {
		return nil
	}
	for _, name := range names {
		if _, known := slices.BinarySearch(s.names, name); !known {
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown parameter %q", sanitize.Line(name, 80)), Hint: s.hint(suggest.Of(name, s.names))}
		}
	}
	return nil
}

// misspelt returns the missing required parameter that resembles a given unknown name, "" for none.
func (s *Schema) misspelt(err *jsonschema.ValidationError, names []string) string {
	for _, cause := range err.Causes {
		required, ok := cause.ErrorKind.(*kind.Required)
		if !ok || len(cause.InstanceLocation) > 0 {
			continue
		}
		for _, name := range names {
			if _, known := slices.BinarySearch(s.names, name); known {
				continue
			}
			if near := suggest.Of(name, required.Missing); near != "" {
				return near
			}
		}
	}
	return ""
}

// hint lists the parameters, and names the one that was probably meant.
func (s *Schema) hint(near string) string {
	if len(s.names) == 0 {
		return ""
	}
	hint := "parameters: " + strings.Join(s.names[:min(len(s.names), 30)], ", ")
	if near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return sanitize.Line(hint, 600)
}
