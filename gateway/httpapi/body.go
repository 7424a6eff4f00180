package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// errMediaType says that the content type is not JSON. A page of another origin can send JSON only after a preflight request.
var errMediaType = errors.New("not application/json")

// readBody decodes one JSON object into a struct. Names must match its tags exactly and occur once, so that
// all parsers see the same request.
func readBody(r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &tool.Error{Kind: tool.Invalid, Message: "the body must be application/json", Err: errMediaType}
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: "the body is too large, or did not arrive", Err: err}
	}
	if !utf8.Valid(data) || !json.Valid(data) {
		return invalid("the body is not JSON")
	}
	body := reflect.ValueOf(into).Elem()
	there, err := readNames(data, fieldNames(body.Type()), r.PathValue)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok {
			return invalid("the body does not fit")
		}
		return invalid(wrong.Field + " cannot be a " + wrong.Value)
	}
	return checkFields(body, there)
}

func invalid(message string) *tool.Error { return &tool.Error{Kind: tool.Invalid, Message: message} }

// fieldNames returns the JSON names of a struct's fields.
func fieldNames(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// readNames returns the members of an object. It refuses other values, and unknown or duplicate names. data must be valid
// JSON. A path parameter may be repeated with the same value: clients that call operations as tools put all arguments into
// the body.
func readNames(data []byte, names []string, path func(name string) string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, invalid("the body must be one JSON object")
	}
	there := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return nil, invalid("the body is not JSON")
		}
		if _, twice := there[name]; twice {
			return nil, invalid("the body has " + sanitize.Line(name, 60) + " twice")
		}
		if !slices.Contains(names, name) && !repeats(value, path(name)) {
			return nil, unknownName("the body", name, names)
		}
		there[name] = value
	}
	return there, nil
}

// repeats reports whether a value is the same string as a path parameter.
func repeats(value json.RawMessage, text string) bool {
	var said string
	return text != "" && json.Unmarshal(value, &said) == nil && said == text
}

func unknownName(where, name string, names []string) error {
	err := invalid(where + " has no " + sanitize.Line(name, 60))
	err.Hint = "it takes none"
	if len(names) > 0 {
		err.Hint = "it has " + strings.Join(names, ", ")
	}
	if near := suggest.Of(name, names); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}
