package yamledit

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

type entry struct {
	Command string   `yaml:"command"`
	Args    []string `yaml:"args,omitempty,flow"`
}

var added = entry{"npx", []string{"-y", "yes", "a: b # c", "two\nlines"}}

func TestAdd(t *testing.T) {
	const text = "new:\n    command: npx\n    args: [-y, \"yes\", 'a: b # c', \"two\\nlines\"]\n"
	in := func(pad string) string { return pad + strings.ReplaceAll(text, "\n    ", "\n"+pad+"  ") }
	for name, test := range map[string]struct{ before, after string }{
		"nothing":             {"", "s:\n" + in("  ")},
		"comments only":       {"# mine\n\n", "# mine\ns:\n" + in("  ") + "\n"},
		"another section":     {"o: 1\n", "o: 1\ns:\n" + in("  ")},
		"empty braces":        {"s: {} # none yet\no: 1\n", "s: # none yet\n" + in("  ") + "o: 1\n"},
		"no value":            {"s:\no: 1\n", "s:\n" + in("  ") + "o: 1\n"},
		"no final newline":    {"s:\n  a: {x: 1}", "s:\n  a: {x: 1}\n" + in("  ")},
		"before a section":    {"s:\n    a:\n        x: 1 # one\n    # of s\n\n# of o\no: 1\n", "s:\n    a:\n        x: 1 # one\n" + in("    ") + "    # of s\n\n# of o\no: 1\n"},
		"literal with a #":    {"s:\n  a:\n    x: |\n      # text\n\no: 1\n", "s:\n  a:\n    x: |\n      # text\n" + in("  ") + "\no: 1\n"},
		"literal that keeps":  {"s:\n  a:\n    x: |+\n      text\n\no: 1\n", "s:\n  a:\n    x: |+\n      text\n\n" + in("  ") + "o: 1\n"},
		"bracket at column 0": {"s:\n  a:\n    x: [\n1\n]\n", "s:\n  a:\n    x: [\n1\n]\n" + in("  ")},
		"end of document":     {"---\ns:\n  a: 1\n...\n", "---\ns:\n  a: 1\n" + in("  ") + "...\n"},
		"windows":             {"s:\r\n  a: 1\r\n", "s:\r\n  a: 1\r\n" + strings.ReplaceAll(in("  "), "\n", "\r\n")},
		"mark":                {"\ufeffs:\n  a: 1\n", "\ufeffs:\n  a: 1\n" + in("  ")},
	} {
		got, err := Add([]byte(test.before), "s", "new", added)
		if err != nil || string(got) != test.after {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, test.after)
		}
	}
}

func TestRemove(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"the last":     {"s:\n  a: 1\n\n  # about b\n  b:\n    x: 1\n    # deep\n\n# of o\no: 1\n", "s:\n  a: 1\n\n# of o\no: 1\n"},
		"the first":    {"s:\n  # all of them\n\n  b: 1 # b\n  # about a\n  a: 2\n", "s:\n  # all of them\n\n  # about a\n  a: 2\n"},
		"in between":   {"s:\n  a: 1\n\n  b: {x: 1,\ny: 2}\n\n  c: 3\n", "s:\n  a: 1\n\n  c: 3\n"},
		"the only one": {"s: # mine\n  b:\n    x: 1\no: 1\n", "s: {} # mine\no: 1\n"},
	} {
		got, err := Remove([]byte(test.before), "s", "b")
		if err != nil || string(got) != test.after {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, test.after)
		}
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]error{
		"s: {a: 1}\n": ErrFlow, "{s: {a: 1}}\n": ErrFlow, "s: {\n}\n": ErrFlow, "s:\n  new: 1\n": ErrExists, "s:\n  a: 1\n---\n": ErrUnsafe,
	} {
		if got, err := Add([]byte(text), "s", "new", added); !errors.Is(err, want) {
			t.Errorf("add to %q: %v, %q", text, err, got)
		}
	}
	for text, want := range map[string]error{"s: {b: 1}\n": ErrFlow, "s:\n  a: 1\n": ErrMissing, "": ErrMissing, "s:\n": ErrMissing} {
		if got, err := Remove([]byte(text), "s", "b"); !errors.Is(err, want) {
			t.Errorf("remove from %q: %v, %q", text, err, got)
		}
	}
	for _, text := range []string{"- a\n", "s: [\n", "s: 'x\n"} {
		if _, err := Add([]byte(text), "s", "new", added); err == nil {
			t.Errorf("%q was edited", text)
		}
	}
}

// FuzzEdit: whatever the file, what is added is there, all else means what it did, and every line of it is still there.
func FuzzEdit(f *testing.F) {
	for _, seed := range []string{"", "s: {}\n", "s:\n  a: 1\n  # c\no: |\n  # x\n", "o: &a [x]\ns:\n b: *a\n", "s:\n  a: \"x\n\n   y\"\n", "\"s\" :\r\n  a: 1", "s:\n- a\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		made, err := Add(data, "s", "new", added)
		if err != nil || bytes.Contains(bytes.ReplaceAll(data, []byte("\r\n"), nil), []byte("\r")) {
			return // a bare \r ends a line too, but not for bytes.Lines
		}
		var doc struct{ S map[string]yaml.Node }
		if err := yaml.Unmarshal(made, &doc); err != nil {
			return // such as a key that is there twice; to the parser of nodes it is none
		}
		var got entry
		node := doc.S["new"]
		if err := node.Decode(&got); err != nil || got.Args[3] != added.Args[3] {
			t.Fatalf("%q became %q: %v", data, made, err)
		}
		at := 0
		for line := range bytes.Lines(data) {
			word := strings.TrimRight(string(line), " \r\n")
			word = strings.TrimSuffix(strings.TrimSuffix(word, "{}"), " ")
			if i := bytes.Index(made[at:], []byte(word)); i < 0 && !bytes.Contains(line, []byte("{}")) {
				t.Fatalf("%q became %q: %q is gone", data, made, line)
			} else if i > 0 {
				at += i
			}
		}
		if back, err := Remove(made, "s", "new"); err == nil && bytes.Contains(back, []byte("two\\nlines")) && !bytes.Contains(data, []byte("two")) {
			t.Fatalf("%q was not removed from %q", "new", made)
		}
	})
}
