package flowgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sallyport/internal/tool"
)

// value is a JSON value that keeps the order of members.
type value struct {
	// raw is its compact JSON, for comparison.
	raw     string
	items   []value  // of a list
	members []member // of an object
	kind    byte     // '{', '[', '"', '0' (a number), 't' (a bool), 'n' (null)
	text    string   // of a text
}

type member struct {
	name string
	value
}

var errNotJSON = errors.New("no JSON")

// maxNested limits the nesting of a value.
const maxNested = 64

func parse(data []byte) (value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := read(d, maxNested)
	if err != nil {
		return value{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return value{}, errNotJSON
	}
	return v, nil
}

func read(d *json.Decoder, depth int) (value, error) {
	token, err := d.Token()
	if err != nil || depth == 0 {
		return value{}, errNotJSON
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return object(d, depth-1)
		}
		return list(d, depth-1)
	case string:
		return textValue(t), nil
	case json.Number:
		return value{kind: '0', raw: t.String()}, nil
	case bool:
		return value{kind: 't', raw: strconv.FormatBool(t)}, nil
	}
	return value{kind: 'n', raw: "null"}, nil
}

func textValue(s string) value { return value{kind: '"', text: s, raw: quote(s)} }

func list(d *json.Decoder, depth int) (value, error) {
	v := value{kind: '['}
	raws := []string{}
	for d.More() {
		item, err := read(d, depth)
		if err != nil {
			return value{}, err
		}
		v.items, raws = append(v.items, item), append(raws, item.raw)
	}
	v.raw = "[" + strings.Join(raws, ",") + "]"
	_, err := d.Token()
	return v, err
}

func object(d *json.Decoder, depth int) (value, error) {
	v := value{kind: '{'}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return value{}, errNotJSON
		}
		name, _ := key.(string)
		item, err := read(d, depth)
		if err != nil {
			return value{}, err
		}
		v.members = slices.DeleteFunc(v.members, func(m member) bool { return m.name == name }) // the last duplicate wins
		v.members = append(v.members, member{name, item})
	}
	raws := make([]string, len(v.members))
	for i, m := range v.members {
		raws[i] = quote(m.name) + ":" + m.raw
	}
	v.raw = "{" + strings.Join(raws, ",") + "}"
	_, err := d.Token()
	return v, err
}

// quote returns a string as JSON that is also valid YAML and CEL: characters that YAML does not allow are escaped.
func quote(s string) string {
	var encoded, b strings.Builder
	enc := json.NewEncoder(&encoded)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	for _, r := range strings.TrimSuffix(encoded.String(), "\n") {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// resultOf returns a result as expressions see it.
func resultOf(r tool.Result) value {
	raw, err := json.Marshal(r.Value().Plain())
	if err != nil {
		return value{kind: 'n', raw: "null"}
	}
	v, err := parse(raw)
	if err != nil {
		return value{kind: 'n', raw: "null"}
	}
	return v
}

const (
	// minText is the minimum length of a text to be matched with an earlier one, minPart to be matched within another text.
	minText, minPart = 4, 6
	// minNumber is the minimum absolute value of a number to be matched.
	minNumber = 1000
	// minWhole is the minimum length of the JSON of a list or object to be matched.
	minWhole = 8
)

// distinctive reports whether an equal value is unlikely to be a coincidence.
func (v value) distinctive() bool {
	switch v.kind {
	case '"':
		return utf8.RuneCountInString(v.text) >= minText
	case '0':
		n, err := strconv.ParseFloat(v.raw, 64)
		return err == nil && (n >= minNumber || n <= -minNumber || strings.ContainsAny(v.raw, ".eE") && len(v.raw) > minText)
	case '{', '[':
		return len(v.raw) >= minWhole
	}
	return false
}

// scalar reports whether it is a string or a number.
func (v value) scalar() bool { return v.kind == '"' || v.kind == '0' }

// member returns a member of an object.
func (v value) member(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are the reserved words of CEL.
const reserved = " as break const continue else false for function if import in let loop namespace null package return true var void while "

// dot returns the expression suffix for a member.
func dot(name string) string {
	if plainName.MatchString(name) && !strings.Contains(reserved, " "+name+" ") {
		return "." + name
	}
	return "[" + quote(name) + "]"
}

func at(i int) string { return "[" + strconv.Itoa(i) + "]" }
