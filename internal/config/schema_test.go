package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/yamlstrict"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// publishedSchema is the copy of the schema for editors. The other is part of the program.
const publishedSchema = "../../docs/upstreams.schema.json"

// TestSchema holds both copies of the schema to the tables of the decoder.
func TestSchema(t *testing.T) {
	text := newSchemaWriter(t).document()
	golden.Check(t, "upstreams.schema.json", text)
	golden.Check(t, publishedSchema, text)
	if !golden.Update() && string(Schema()) != text {
		t.Error("Schema returns another text")
	}
	compileSchema(t)
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(publishedSchema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validateText says what an editor says of a file; isData is false if the file is not even a document.
func validateText(t *testing.T, schema *jsonschema.Schema, data []byte) (isData bool, problem error) {
	t.Helper()
	root, err := yamlstrict.NewSource("upstreams.yaml", data).Document("is empty")
	if err != nil {
		return false, err
	}
	return true, schema.Validate(plainValue(root))
}

// plainValue is a node as an editor sees it. An alias is nothing that the schema allows.
func plainValue(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			all[n.Content[i].Value] = plainValue(n.Content[i+1])
		}
		return all
	case yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			all = append(all, plainValue(item))
		}
		return all
	case yaml.AliasNode:
		return nil
	}
	return plainScalar(n)
}

func plainScalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if _, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return json.Number(n.Value)
		}
	}
	return n.Value
}

// TestSchemaAccepts validates the settings that load: those of the repository, of its pages, and of tests.
func TestSchemaAccepts(t *testing.T) {
	schema := compileSchema(t)
	root := testutil.ModuleRoot(t)
	files := []string{"testdata/everything.yaml"}
	for _, pattern := range []string{"upstreams.yaml", "docs/examples/*/upstreams*.yaml", "cmd/sallyport/testdata/compat/files/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 && !strings.Contains(pattern, "examples") {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := validateText(t, schema, data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for page, blocks := range settingsBlocks(t) {
		for _, text := range blocks {
			if _, err := validateText(t, schema, []byte(wholeFile(text))); err != nil {
				t.Errorf("%s: %v\n%s", page, err, text)
			}
		}
	}
}

// unknownToSchema are the examples of errors that the schema does not know.
var unknownToSchema = strings.Fields(
	// Other files, references and variables.
	"env_file env_file_empty env_file_line env_file_missing env_file_open references variables recognizer_ca workspaces_secrets plugin_name " +
		// Values and keys that depend on each other.
		"auth auth_issuer auth_key egress_budget isolate_remote http operators sandbox_remote_environments sandbox_workers sandbox_workers_environments store_user " +
		// Forms of values that no pattern of JSON Schema says: globs, names in programs, addresses.
		"names_of_tools sandbox_remote hint_home registry " +
		// Of two keys with one name, the schema sees one.
		"duplicates")

// TestSchemaRefuses validates the examples of errors: the schema refuses all but those of unknownToSchema.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d inputs: %v", len(files), err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		isData, problem := validateText(t, schema, data)
		if unknown := slices.Contains(unknownToSchema, name); isData && unknown != (problem == nil) {
			t.Errorf("%s: in unknownToSchema: %v, but the schema says: %v", name, unknown, problem)
		}
	}
}
