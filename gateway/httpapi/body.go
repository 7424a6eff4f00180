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

// errMediaType says that a body is not called JSON: a page of another origin can send only other types without a preflight request.
var errMediaType = errors.New("not application/json")

// readBody reads one JSON object into a struct. Names are those of its tags to the letter, each once: of two
// readers none may see another request.
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

// fieldNames are the names that a struct has in JSON.
func fieldNames(t reflect.Type) (names []string) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// readNames gives the members of an object, and refuses what is none, and names in it that are unknown or there twice. The
// data is valid JSON. What the path says may be said again: clients that know tools by OpenAPI put all of a tool's
// arguments into the body.
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

// repeats reports whether a value is a text that is there already.
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
