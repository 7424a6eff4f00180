package yamlstrict

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// FuzzInside: each letter of a text is where Inside says, in JSON and in the quotes that YAML has.
func FuzzInside(f *testing.F) {
	for _, text := range []string{"", "plain", `a"b\c`, "it's", "line\nand\n\nline", "tab\t", "ä\u0085日\u2028🎉x", "\x00\x7f", "a  \n  b", "${{ x }}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 1000 {
			return
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		checkInside(t, NewSource("f.json", append([]byte("\n ["), append(encoded, ']')...)), text, (*Source).JSON)
		if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
			single := "- '" + strings.ReplaceAll(strings.ReplaceAll(text, "'", "''"), "\n", "\n\n  ") + "'\n"
			checkInside(t, NewSource("f.yaml", []byte(single)), text, (*Source).Document)
		}
	})
}

func checkInside(t *testing.T, s *Source, text string, read func(*Source, string) (*yaml.Node, error)) {
	t.Helper()
	root, err := read(s, "is empty")
	if err != nil {
		return
	}
	n := root.Content[0]
	if n.Value != text { // blanks around a line's end are not kept
		return
	}
	lastLine, lastColumn := 0, 0
	for at, r := range text {
		line, column := s.Inside(n, at)
		if line < lastLine || line == lastLine && column < lastColumn {
			t.Errorf("byte %d of %q is at %d:%d, before %d:%d", at, text, line, column, lastLine, lastColumn)
		}
		lastLine, lastColumn = line, column
		here := []rune(s.Line(line))
		if column < 1 || column > len(here)+1 {
			t.Fatalf("byte %d of %q is at %d:%d, out of %q", at, text, line, column, string(here))
		}
		if unicode.IsLetter(r) && here[column-1] != r && here[column-1] != '\\' {
			t.Errorf("byte %d of %q, %q, is at %d:%d, where %q is", at, text, r, line, column, here[column-1])
		}
	}
}

// TestDecoder reads a small format as the package's comment shows it.
func TestDecoder(t *testing.T) {
	var name, mode string
	var timeout time.Duration
	var tags []string
	var on bool
	read := func(text string) error {
		src := NewSource("t.yaml", []byte(text))
		root, err := src.Document("is empty")
		if err != nil {
			return err
		}
		d := &Decoder{Source: src}
		d.Fields(Path{}, root, []Key{
			{"name", d.Text(&name)}, {"timeout", Scalar(d, &timeout, Duration)}, {"mode", d.OneOf(&mode, "read", "write")}, {"tags", d.Texts(&tags)}, {"on", Scalar(d, &on, Bool)},
		})
		return d.Err()
	}
	if err := read("\ufeffname: x\ntimeout: 90s\nmode: write\ntags: [a, b]\non: true\n"); err != nil || name != "x" || timeout != 90*time.Second || mode != "write" || len(tags) != 2 || !on {
		t.Errorf("%v: %q %v %q %v %v", err, name, timeout, mode, tags, on)
	}
	for text, want := range map[string]string{
		"nam: x\n":               `t.yaml:1:1: unknown key "nam"; did you mean "name"?`,
		"timeout: 90\n":          `t.yaml:1:10: "timeout" has no unit: write 90s for seconds`,
		"mode: raed\n":           `t.yaml:1:7: "mode" cannot be "raed"; did you mean "read"?`,
		"tags: [a, 1]\n":         `t.yaml:1:11: "[1]" must be a string, not a number; put it in quotes`,
		"tags: a\n":              `t.yaml:1:7: "tags" must be a list of strings, not a string; write "- " before each item, or put it in [ ]`,
		"on: yes\n":              `t.yaml:1:5: "on" must be true or false`,
		"name: x\nname: y\n":     `t.yaml:2:1: the key "name" is here already, on line 1`,
		"name: [x\n":             `t.yaml:1:8: this bracket is not closed, or a comma is missing`,
		"tags: [a, b?, \"?\"]\n": `t.yaml:1:12: a text with a "?" must be in quotes inside of [] and {}`,
		"- a\n":                  `t.yaml:1:1: the file must be a mapping, not a list`,
		" \n":                    `t.yaml: is empty`,
		"name: \xff\n":           `t.yaml:1:7: is not UTF-8 text`,
	} {
		if err := read(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestJSON: nodes have the kinds and places that YAML's have.
func TestJSON(t *testing.T) {
	s := NewSource("t.json", []byte("{\n\t\"a\": [1, -2.5e3, true, false, null, \"é\\n\"],\r\n \"ü\": {}, \"b\": [[]]}"))
	root, err := s.JSON("is empty")
	if err != nil {
		t.Fatal(err)
	}
	list := ValueOf(root, "a")
	var got []string
	for _, n := range append([]*yaml.Node{root, list}, list.Content...) {
		got = append(got, n.Tag+" "+n.Value)
	}
	if text := strings.Join(got, ","); text != "!!map ,!!seq ,!!int 1,!!float -2.5e3,!!bool true,!!bool false,!!null null,!!str é\n" {
		t.Error(text)
	}
	b := ValueOf(root, "b")
	if b.Line != 3 || b.Column != 16 || ValueOf(root, "ü").Kind != yaml.MappingNode || b.Content[0].Column != 17 {
		t.Errorf("b is at %d:%d: %+v", b.Line, b.Column, b.Content)
	}
	for text, want := range map[string]string{
		"":             "t.json: is empty",
		"[1,]":         "t.json:1:4: is not JSON: invalid character ']'",
		"{\"a\":1}\n1": "t.json:2:1: is not JSON: invalid character '1' after top-level value",
		"[":            "t.json:1:1: is not JSON: unexpected end of JSON input",
		"\xff":         "t.json:1:1: is not UTF-8 text",
	} {
		if _, err := NewSource("t.json", []byte(text)).JSON("is empty"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
