package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"sallyport/internal/sanitize"
)

const (
	// maxShown bounds the displayed arguments, maxShownText each string in them, in characters.
	maxShown     = 2000
	maxShownText = 400
	// maxDepth is the largest depth of arguments that are displayed.
	maxDepth = 64
)

// FormatArguments returns arguments in canonical form, and for display. A duplicate member name is an error, as the reader and
// the tool might use different values.
func FormatArguments(args json.RawMessage) (canonical []byte, shown string, err error) {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	if !utf8.Valid(args) {
		return nil, "", errNotJSON
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	value, err := decodeValue(dec, maxDepth)
	if err != nil {
		return nil, "", err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, "", errNotJSON
	}
	if canonical, err = encode(value); err != nil {
		return nil, "", err
	}
	if bytes.Contains(bytes.ToLower(args), []byte(`\ud`)) { // lone surrogates are lost in decoding
		canonical = append(canonical, args...)
	}
	short, err := encode(shorten(value))
	if err != nil {
		return nil, "", err
	}
	shown = sanitize.Text(string(short), maxShown)
	if utf8.RuneCount(short) > maxShown {
		shown += fmt.Sprintf(" (cut: %d bytes in all)", len(canonical))
	}
	return canonical, shown, nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

var (
	errNotJSON = errors.New("they are not JSON")
	errTooDeep = errors.New("they are nested too deeply")
)

// decodeValue decodes one value, of at most depth nested values. Duplicate member names are an error.
func decodeValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	switch {
	case err != nil:
		return nil, errNotJSON
	case depth == 0:
		return nil, errTooDeep
	case token == json.Delim('{'):
		return decodeObject(dec, depth-1)
	case token != json.Delim('['):
		return token, nil
	}
	list := []any{}
	for dec.More() {
		item, err := decodeValue(dec, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	if _, err := dec.Token(); err != nil {
		return nil, errNotJSON
	}
	return list, nil
}

func decodeObject(dec *json.Decoder, depth int) (map[string]any, error) {
	object := map[string]any{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, errNotJSON
		}
		name, _ := key.(string)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%q is in them twice", sanitize.Line(name, 60))
		}
		if object[name], err = decodeValue(dec, depth); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, errNotJSON
	}
	return object, nil
}

// shorten returns a value with long strings truncated, so that the rest fits the display.
func shorten(v any) any {
	switch v := v.(type) {
	case string:
		if n := utf8.RuneCountInString(v); n > maxShownText {
			return fmt.Sprintf("%s… (%d characters)", sanitize.Text(v, maxShownText), n)
		}
		return sanitize.Text(v, maxShownText)
	case map[string]any:
		short := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key := sanitize.Line(name, 100)
			if key != name { // it has hidden characters, perhaps to look like another name
				key = sanitize.Line(strconv.QuoteToASCII(name), 100)
			}
			for _, taken := short[key]; taken; _, taken = short[key] {
				key += "'"
			}
			short[key] = shorten(v[name])
		}
		return short
	case []any:
		short := make([]any, len(v))
		for i := range v {
			short[i] = shorten(v[i])
		}
		return short
	}
	return v
}
