package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil/golden"
)

const (
	docs       = "../../../docs/workflows.md"
	keysBegin  = "<!-- keys: made by go test ./gateway/workflow/spec -update -->\n"
	keysEnd    = "<!-- end of keys -->\n"
	exampleTag = "```yaml\n"
)

// TestReference holds the tables of docs/workflows.md to the keys that there are.
func TestReference(t *testing.T) {
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(data), keysBegin)
	_, after, ends := strings.Cut(rest, keysEnd)
	if !begins || !ends {
		t.Fatal("docs/workflows.md has no place for the keys")
	}
	golden.Check(t, docs, before+keysBegin+reference()+keysEnd+after)
}

// TestExamples: definitions in the documentation, and steps of them, can be loaded.
func TestExamples(t *testing.T) {
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, example := range strings.Split(string(data), exampleTag)[1:] {
		text, _, _ := strings.Cut(example, "\n```")
		switch {
		case strings.HasPrefix(text, "- "):
			text = "steps:\n" + text
		case !strings.Contains(text, "\nsteps:"):
			continue // of another file
		}
		tried++
		files := func(string) ([]byte, error) { return []byte("result = 1"), nil }
		if _, err := Parse("example.yaml", []byte(text+"\n"), files); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if tried < 2 {
		t.Errorf("%d examples", tried)
	}
}

// reference is all tables.
func reference() string {
	var out strings.Builder
	for _, s := range sections() {
		title := s.name
		if kind, ok := strings.CutPrefix(title, "step_"); ok {
			title = "step: " + kind
		}
		fmt.Fprintf(&out, "\n### %s\n%s\n\n| key | value | what it is for |\n| --- | --- | --- |\n", title, s.doc)
		for _, k := range s.keys {
			name := "`" + k.name + "`"
			if k.required {
				name = "**" + name + "**"
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", name, valueWords(k.shape), k.doc)
		}
	}
	return out.String() + "\n"
}

// valueWords says what a shape is.
func valueWords(shape string) string {
	var any any
	if json.Unmarshal([]byte(shape), &any) != nil {
		return "?"
	}
	return words(any)
}

func words(shape any) string {
	m, ok := shape.(map[string]any)
	if !ok {
		return "any value"
	}
	if ref, ok := m["$ref"].(string); ok {
		return refWords(strings.TrimPrefix(ref, "#/$defs/"))
	}
	if enum, ok := m["enum"].([]any); ok {
		var all []string
		for _, word := range enum {
			all = append(all, fmt.Sprintf("`%v`", word))
		}
		return strings.Join(all, ", ")
	}
	if anyOf, ok := m["anyOf"].([]any); ok {
		var all []string
		for _, one := range anyOf {
			if w := words(one); !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
		return strings.Join(all, " or ")
	}
	return typeWords(m)
}

func typeWords(m map[string]any) string {
	list, several := m["type"].([]any)
	switch {
	case several && len(list) == 2 && list[1] == "boolean" && m["minLength"] != nil:
		return "expression"
	case several:
		return strings.NewReplacer("[", "", "]", "", " ", ", ", "string", "text").Replace(fmt.Sprint(list))
	case m["type"] == "integer" && m["maximum"] != nil:
		return fmt.Sprintf("%.0f to %.0f", m["minimum"], m["maximum"])
	case m["type"] == "array":
		return "list"
	case m["type"] == "object":
		return "mapping"
	case m["type"] == "boolean":
		return "`true`, `false`"
	case m["type"] == "string":
		return "text"
	}
	return "any value"
}

func refWords(name string) string {
	switch name {
	case "function", "name", "identifier":
		return "name"
	case "duration", "steps":
		return name
	case "steps_or_none":
		return "steps"
	case "expression":
		return "`${{ }}`"
	case "schema":
		return "JSON Schema"
	case "inputs":
		return "[inputs](#input)"
	case "outputs":
		return "[outputs](#output)"
	}
	return "[" + name + "](#" + name + ")"
}
