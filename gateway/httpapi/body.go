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

	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
)

// errMediaType says that a body is not called JSON: a page of another origin can send nothing else unasked.
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
	if err := checkNames(data, fieldNames(reflect.TypeOf(into).Elem())); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok {
			return invalid("the body does not fit")
		}
		return invalid(wrong.Field + " cannot be a " + wrong.Value)
	}
	return nil
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

// checkNames refuses what is no object, and names in it that are unknown or there twice. The data is valid JSON.
func checkNames(data []byte, names []string) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return invalid("the body must be one JSON object")
	}
	var seen []string
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var skipped json.RawMessage
		if err != nil || !ok || dec.Decode(&skipped) != nil {
			return invalid("the body is not JSON")
		}
		if slices.Contains(seen, name) {
			return invalid("the body has " + plain.Line(name, 60) + " twice")
		}
		if !slices.Contains(names, name) {
			return unknownName("the body", name, names)
		}
		seen = append(seen, name)
	}
	return nil
}

func unknownName(where, name string, names []string) error {
	err := invalid(where + " has no " + plain.Line(name, 60))
	err.Hint = "it takes none"
	if len(names) > 0 {
		err.Hint = "it has " + strings.Join(names, ", ")
	}
	if near := nearest.Of(name, names); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}
