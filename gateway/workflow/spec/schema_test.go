package spec

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/testutil/golden"
	"sallyport/internal/yamlstrict"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

const published = "../../../docs/workflow.schema.json"

// TestSchema holds the published schema to what the tables of keys say, and to being a schema.
func TestSchema(t *testing.T) {
	golden.Check(t, published, string(Schema()))
	compiledSchema(t)
}

var schemaOnce = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return compiler.Compile("schema.json")
})

func compiledSchema(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	s, err := schemaOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// acceptedBySchema says what an editor would say of a file; isData is false for one that is no data at all.
func acceptedBySchema(tb testing.TB, path string, data []byte) (isData bool, problem error) {
	tb.Helper()
	src := yamlstrict.NewSource(path, data)
	root, err := document(src, path)
	if root == nil || err != nil {
		return false, err
	}
	text, err := json.Marshal(plainly(root))
	if err != nil {
		tb.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return true, compiledSchema(tb).Validate(value)
}

// plainly is a node as an editor sees it; of two keys the last counts.
func plainly(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			all[n.Content[i].Value] = plainly(n.Content[i+1])
		}
		return all
	case yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			all = append(all, plainly(item))
		}
		return all
	case yaml.AliasNode:
		return "*"
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if value, wrong := parseNumber(n.Value); wrong == "" {
			return value
		}
	}
	return n.Value
}

// TestSchemaAccepts: what Load takes, an editor takes.
func TestSchemaAccepts(t *testing.T) {
	shipped, err := filepath.Glob("../../../workflows/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(shipped, "testdata/everything.yaml", "testdata/everything.json") {
		if !isDefinition(filepath.Base(path)) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err != nil {
			t.Errorf("load: %v", err)
		}
		if _, err := acceptedBySchema(t, path, data); err != nil {
			t.Errorf("%s: the schema refuses it: %v", path, err)
		}
	}
}
