package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// decodeArguments decodes arguments into the *string, *float64, *[]string or *map[string]json.RawMessage
// of their name. An unknown name is an error, since a model would not notice an ignored argument.
// Unambiguous deviations are accepted: null is absent, "8" is a number, and a single string is
// a list of one.
//
// hidden are aliases that other servers use: they are accepted, but not in any schema or error
// text. Two names of one target cannot be given together.
func decodeArguments(raw json.RawMessage, into map[string]any, hidden ...map[string]any) error {
	var given map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return invalidArgument("arguments must be an object", "")
	}
	names, all, by := slices.Sorted(maps.Keys(into)), map[string]any{}, map[any]string{}
	for _, more := range append(hidden, into) {
		maps.Copy(all, more)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		target, ok := all[name]
		if !ok {
			return unknownParameter(name, names)
		}
		if string(given[name]) == "null" {
			continue
		}
		if by[target] != "" {
			return invalidArgument(by[target]+" and "+name+" are the same; give one of them", "")
		}
		if err := decodeArgument(target, given[name]); err != "" {
			return invalidArgument(name+" must be "+err, "")
		}
		by[target] = name
	}
	return nil
}

// decodeArgument decodes one value; want is the expected type if it does not fit, else "".
func decodeArgument(target any, value json.RawMessage) (want string) {
	switch target := target.(type) {
	case *string:
		if json.Unmarshal(value, target) != nil {
			return "a string"
		}
	case **string: // tells empty from absent
		var text string
		if json.Unmarshal(value, &text) != nil {
			return "a string"
		}
		*target = &text
	case *float64:
		return decodeNumber(target, value)
	case *[]string:
		return decodeTexts(target, value)
	case *bool:
		switch strings.Trim(string(value), `"`) {
		case "true":
			*target = true
		case "false":
			*target = false
		default:
			return "true or false"
		}
	case *json.RawMessage: // a schema
		if len(value) == 0 || value[0] != '{' {
			return "an object"
		}
		*target = value
	case *map[string]json.RawMessage:
		if json.Unmarshal(value, target) != nil {
			return "an object"
		}
	}
	return ""
}

// decodeNumber decodes a number, which may be quoted.
func decodeNumber(target *float64, value json.RawMessage) (want string) {
	var quoted string
	if json.Unmarshal(value, &quoted) == nil {
		value = json.RawMessage(strings.TrimSpace(quoted))
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil || number != number {
		return "a number"
	}
	*target = number
	return ""
}

// decodeTexts decodes a list of strings, or one string.
func decodeTexts(target *[]string, value json.RawMessage) (want string) {
	var one string
	if json.Unmarshal(value, &one) == nil {
		*target = []string{one}
	} else if json.Unmarshal(value, target) != nil {
		return "a list of strings"
	}
	return ""
}

func unknownParameter(name string, names []string) error {
	hint := "there are no parameters"
	if len(names) > 0 {
		hint = "parameters: " + strings.Join(names, ", ")
	}
	if near := suggest.Of(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return invalidArgument(fmt.Sprintf("unknown parameter %q", sanitize.Line(name, 80)), hint)
}

func invalidArgument(message, hint string) error {
	return &tool.Error{Kind: tool.Invalid, Message: message, Hint: hint}
}
