package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// param is one query parameter of a route. It is used to parse requests and to generate the OpenAPI document.
type param struct {
	name, summary string
	// read parses a value, or returns what is wrong, in words that follow the name.
	read func(text string) (value any, wrong string)
	// fallback is the default value, nil for the zero value.
	fallback any
	// schema is its JSON Schema.
	schema map[string]any
}

// number is an integer parameter within bounds; usual is its default.
func number(name string, least, most, usual int, does string) param {
	schema := map[string]any{"type": "integer", "minimum": least, "maximum": most}
	if usual != 0 {
		schema["default"] = usual
	}
	return param{name: name, summary: does, fallback: usual, schema: schema, read: func(text string) (any, string) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return nil, "must be one number, " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
		}
		return n, ""
	}}
}

// limit is the maximum number of items in a list.
func limit(usual, most int) param {
	return number("limit", 1, most, usual, "how many at most")
}

// text is a text parameter of at most most bytes.
func text(name string, most int, does string) param {
	return param{name: name, summary: does, schema: map[string]any{"type": "string", "maxLength": most}, read: func(text string) (any, string) {
		if len(text) > most || !utf8.ValidString(text) {
			return nil, "must be one text of at most " + strconv.Itoa(most) + " bytes"
		}
		return text, ""
	}}
}

// maxWord is the maximum length of a word parameter, in bytes.
const maxWord = 100

// word is a short text, such as a name or an id.
func word(name, does string) param { return text(name, maxWord, does) }

// choice is a parameter with fixed values.
func choice[S ~string](name, does string, of ...S) param {
	words := make([]string, len(of))
	for i, one := range of {
		words[i] = string(one)
	}
	return param{name: name, summary: does, schema: map[string]any{"type": "string", "enum": words}, read: func(text string) (any, string) {
		if !slices.Contains(words, text) {
			return nil, "must be one of " + strings.Join(words, ", ")
		}
		return text, ""
	}}
}

// moment is a time parameter in RFC 3339.
func moment(name, does string) param {
	return param{name: name, summary: does, schema: map[string]any{"type": "string", "format": "date-time"}, read: func(text string) (any, string) {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, "must be one time such as 2026-11-22T09:30:00Z"
		}
		return at, ""
	}}
}

// queryValues are the values of a query, by parameter name.
type queryValues map[string]any

func (a queryValues) number(name string) int {
	n, _ := a[name].(int)
	return n
}

func (a queryValues) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a queryValues) time(name string) time.Time {
	at, _ := a[name].(time.Time)
	return at
}

// readQuery parses a query: each parameter may occur once, and no others.
func readQuery(query url.Values, params []param) (queryValues, error) {
	got := queryValues{}
	var names []string
	for _, p := range params {
		names = append(names, p.name)
		if p.fallback != nil {
			got[p.name] = p.fallback
		}
		values, ok := query[p.name]
		if !ok {
			continue
		}
		value, wrong := p.read(values[0])
		if len(values) > 1 && wrong == "" {
			wrong = "must be there once"
		}
		if wrong != "" {
			return nil, invalid(p.name + " " + wrong)
		}
		got[p.name] = value
	}
	for name := range query {
		if !slices.Contains(names, name) {
			return nil, unknownName("the query", name, names)
		}
	}
	return got, nil
}

type queryKey struct{}

// withQuery parses the query of a request by the route's parameters and puts it into the context for [queryOf].
func withQuery(r *http.Request, params []param) (*http.Request, error) {
	if len(params) == 0 && r.URL.RawQuery == "" {
		return r, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return r, invalid("the query is not well formed")
	}
	got, err := readQuery(query, params)
	if err != nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), queryKey{}, got)), nil
}

// queryOf returns the parsed query of a request.
func queryOf(r *http.Request) queryValues {
	got, _ := r.Context().Value(queryKey{}).(queryValues)
	return got
}
