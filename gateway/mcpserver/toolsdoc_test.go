package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/golden"
)

var (
	docRow     = regexp.MustCompile("(?m)^\\| `([a-z_]+)\\(([^)]*)\\)` \\| ([0-9]+) \\| .* `(\\{.*\\})` \\|$")
	docTexts   = regexp.MustCompile("(?s)<!-- begin texts -->.*<!-- end texts -->")
	docProfile = regexp.MustCompile(`(?m)^## ([a-z]+) \(([0-9]+) tokens\)$`)
)

// TestToolsDoc holds docs/reference/tools.md to the definitions: each tool, its parameters, an example of
// them, and what it costs. With -update the numbers are put right.
func TestToolsDoc(t *testing.T) {
	t.Parallel()
	g, opts := everything(t)
	opts.Environments = nil
	costs, err := mcpserver.Costs(g.Service(), opts)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(testutil.ModuleRoot(t), "docs", "reference", "tools.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cost, sum := map[string]int{}, map[string]int{}
	for _, c := range costs {
		sum[c.Profile] += c.Tokens
		if cost[c.Name] == 0 {
			cost[c.Name] = c.Tokens
		}
	}
	doc := docProfile.ReplaceAllStringFunc(string(text), func(line string) string {
		name := docProfile.FindStringSubmatch(line)[1]
		return fmt.Sprintf("## %s (%d tokens)", name, sum[name])
	})
	documented := map[string][]string{}
	doc = docRow.ReplaceAllStringFunc(doc, func(line string) string {
		m := docRow.FindStringSubmatch(line)
		documented[m[1]] = m[2:]
		return strings.Replace(line, "` | "+m[3]+" | ", fmt.Sprintf("` | %d | ", cost[m[1]]), 1)
	})
	defs := allTools(t, g.Service(), *opts)
	doc = docTexts.ReplaceAllLiteralString(doc, "<!-- begin texts -->\n"+descriptions(defs, "search_tools", "execute_code")+"<!-- end texts -->")
	golden.Check(t, file, doc)
	for _, def := range defs {
		row, ok := documented[def.Name]
		if !ok {
			t.Errorf("docs/reference/tools.md has no row for %s", def.Name)
			continue
		}
		delete(documented, def.Name)
		schema, _ := def.InputSchema.(map[string]any)
		parameters := parametersOf(schema)
		if diff := cmp.Diff(parameters, sortedParameters(row[0])); diff != "" {
			t.Errorf("%s: -definition +docs\n%s", def.Name, diff)
		}
		var example map[string]any
		if err := json.Unmarshal([]byte(row[2]), &example); err != nil {
			t.Errorf("%s: the example %s: %v", def.Name, row[2], err)
		}
		for name := range example {
			if !slices.Contains(parameters, name) && !slices.Contains(parameters, name+"?") {
				t.Errorf("%s: the example has %s, which is no parameter", def.Name, name)
			}
		}
	}
	for name := range documented {
		t.Errorf("docs/reference/tools.md has %s, which is no tool", name)
	}
}

// descriptions returns the descriptions of tools as blocks of text, in lines of at most 118 characters.
func descriptions(defs map[string]*mcp.Tool, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "```text\n%s:", name)
		width := len(name) + 1
		for word := range strings.FieldsSeq(defs[name].Description) {
			if width+len(word) >= 118 {
				b.WriteString("\n ")
				width = 1
			}
			b.WriteString(" " + word)
			width += len(word) + 1
		}
		b.WriteString("\n```\n")
	}
	return b.String()
}

// allTools are those of every profile, and the two as they are without any.
func allTools(t *testing.T, verbs mcpserver.Service, opts mcpserver.Options) map[string]*mcp.Tool {
	t.Helper()
	all := map[string]*mcp.Tool{}
	for _, profiles := range []config.Profiles{config.AllProfiles(), nil} {
		opts.Profiles = profiles
		list, err := connectWith(t, verbs, &opts).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, def := range list.Tools {
			all[def.Name] = def
		}
	}
	return all
}

func sortedParameters(text string) []string {
	if text == "" {
		return nil
	}
	names := strings.Split(text, ", ")
	slices.Sort(names)
	return names
}

// parametersOf are those of a schema, with ? where they can be left out.
func parametersOf(schema map[string]any) (names []string) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			name += "?"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
