package trust

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/tool"
)

// catalog returns the tools of real servers by server. It lies beside the
// project, for its texts are not ours.
func catalog(t testing.TB) map[string][]tool.Tool {
	t.Helper()
	files, _ := filepath.Glob("../../../shared/catalog/*.json")
	if len(files) == 0 {
		t.Skip("no ../shared/catalog beside the project: real tool lists are not checked")
	}
	all := map[string][]tool.Tool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, raw := range list.Tools {
			all[name] = append(all[name], parse(t, raw))
		}
	}
	return all
}

// parse makes a tool of a definition as it is sent.
func parse(t testing.TB, raw []byte) tool.Tool {
	t.Helper()
	var d struct {
		Name, Title, Description  string
		InputSchema, OutputSchema json.RawMessage
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return tool.Tool{ID: tool.ID{Upstream: "u", Name: tool.Identifier(d.Name)}, Wire: d.Name, Title: d.Title, Description: d.Description,
		Input: d.InputSchema, Output: d.OutputSchema, Raw: raw}
}

// otherNames returns the names of all tools but those of one server.
func otherNames(all map[string][]tool.Tool, but string) map[string]bool {
	names := map[string]bool{}
	for server, tools := range all {
		for _, t := range tools {
			names[t.Wire] = names[t.Wire] || server != but
		}
	}
	for _, t := range all[but] {
		delete(names, t.Wire)
	}
	return names
}

// TestCatalogIsClean: the normal user sees nothing of all this.
func TestCatalogIsClean(t *testing.T) {
	all := catalog(t)
	count, held := 0, 0
	for server, tools := range all {
		others := otherNames(all, server)
		for _, definition := range tools {
			count++
			if findings := Inspect(definition, others); findings != nil {
				held++
				t.Logf("%s %s: %+v", server, definition.Wire, findings)
			}
		}
	}
	t.Logf("%d of %d real tools held", held, count)
	if held > 0 {
		t.Errorf("%d of %d real tools held", held, count)
	}
}
