package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/refpage"
)

// TestReference holds docs/reference/workflow-keys.md to the tables of keys.
func TestReference(t *testing.T) {
	p := refpage.New("workflow-keys.md", "Workflow keys", "gateway/workflow/spec", "TestReference")
	p.Text("Every key of a definition. A key in bold is required. " +
		"[Workflows](../how-to/workflows.md) explains them; [the schema](../workflow.schema.json) is for editors (`sallyport workflow schema`).")
	for _, s := range sections() {
		title := s.name
		if kind, ok := strings.CutPrefix(title, "step_"); ok {
			title = "step: " + kind
		}
		p.Heading(2, title)
		p.Text(s.doc)
		var items []string
		for _, k := range s.keys {
			name := refpage.Quote(k.name)
			if k.required {
				name = "**" + name + "**"
			}
			items = append(items, name+" ("+valueWords(k.shape)+"): "+refpage.Escape(refpage.Sentence(k.doc)))
		}
		p.List(items)
	}
	p.Check(t)
}

// TestExamples loads the definitions of docs/how-to/workflows.md, with the steps and triggers that are shown alone.
func TestExamples(t *testing.T) {
	tried := 0
	for _, example := range testutil.Examples(t, "docs/how-to/workflows.md") {
		text := example.Text
		switch {
		case example.Language != "yaml":
			continue
		case strings.HasPrefix(text, "- "):
			text = "steps:\n" + text
		case strings.HasPrefix(text, "on:"):
			text += "steps: [{id: one, wait: 1s}]\n"
		case strings.HasPrefix(text, "workflows:"), example.Section == "Testing":
			continue // settings and tests are loaded by TestDocsSettings and TestDocsExamples of other packages
		}
		tried++
		files := func(string) ([]byte, error) { return []byte("result = 1"), nil }
		if _, err := Parse("example.yaml", []byte(text), files); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if tried < 5 {
		t.Errorf("%d examples", tried)
	}
}

// TestExampleWorkflows checks that workflows/README.md lists each definition, and no other.
func TestExampleWorkflows(t *testing.T) {
	folder := filepath.Join(testutil.ModuleRoot(t), "workflows")
	defs, faults := LoadDir(folder)
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	for _, d := range defs {
		if !strings.Contains(string(page), "\n| `"+d.Name+"` | ") {
			t.Errorf("it does not list %s", d.Name)
		}
	}
	if rows := strings.Count(string(page), "\n| `"); rows != len(defs) {
		t.Errorf("it has %d rows for %d definitions", rows, len(defs))
	}
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
