package settingsfile

import (
	"bytes"
	"fmt"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/keyschema"
	"sallyport/internal/yamledit"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Change is a change of a settings file to what this version reads.
type Change struct {
	// Line is the line in the file before, from 1.
	Line int
	// Text says what changes, as in `"servers" becomes "upstreams"`.
	Text string
}

// maxChanges bounds the changes of one migration.
const maxChanges = 1000

// Migrate rewrites keys of other programs and of earlier versions to those of this version. The rest of the file stays
// as it is, with its comments. Without changes it returns data. Keys that are not known at all stay, too.
func Migrate(file string, data []byte) ([]byte, []Change, error) {
	var all []Change
	removed := 0 // lines
	for range maxChanges {
		root, err := yamlstrict.NewSource(file, data).Document(`is empty; it needs at least the key "upstreams"`)
		if err != nil {
			return nil, nil, err
		}
		step := nextStep(nil, root, config.KeySchema())
		if step == nil {
			break
		}
		made, err := step.edit(data)
		if err != nil {
			return nil, nil, fmt.Errorf("migrate %s, line %d: %s: %w", file, step.change.Line, step.change.Text, err)
		}
		step.change.Line += removed
		removed += bytes.Count(data, []byte("\n")) - bytes.Count(made, []byte("\n"))
		all, data = append(all, step.change), made
	}
	return data, all, nil
}

// A migrationStep is one edit.
type migrationStep struct {
	change Change
	edit   func(data []byte) ([]byte, error)
}

// nextStep returns the first edit of a mapping, and of those in it; nil for none.
func nextStep(at yamlstrict.Path, n *yaml.Node, schema keyschema.Node) *migrationStep {
	schema = schema.Mapping()
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		under := at.To(key.Value)
		if _, known := schema.Properties[key.Value]; len(schema.Properties) > 0 && !known {
			if step := stepOf(under, n, key, value, schema); step != nil {
				return step
			}
			continue
		}
		if step := nextStep(under, value, schema.Member(key.Value)); step != nil {
			return step
		}
	}
	return nil
}

// stepOf returns the edit for an unknown key.
func stepOf(at yamlstrict.Path, mapping, key, value *yaml.Node, schema keyschema.Node) *migrationStep {
	if len(at) == 3 && at[0] == "upstreams" && key.Value == "type" {
		return typeStep(at, mapping, key, value)
	}
	name := config.ForeignKey(key.Value)
	if _, known := schema.Properties[name]; !known || yamlstrict.ValueOf(mapping, name) != nil {
		return nil
	}
	return renameStep(at, key, name)
}

func renameStep(at yamlstrict.Path, key *yaml.Node, name string) *migrationStep {
	return &migrationStep{Change{key.Line, fmt.Sprintf("%q becomes %q", key.Value, name)},
		func(data []byte) ([]byte, error) { return yamledit.Rename(data, at, name) }}
}

// typeStep returns the edit for the type of a server in the settings of clients.
func typeStep(at yamlstrict.Path, mapping, key, value *yaml.Node) *migrationStep {
	has := func(name string) bool { return yamlstrict.ValueOf(mapping, name) != nil }
	kind := strings.ToLower(value.Value)
	switch {
	case value.Kind != yaml.ScalarNode:
		return nil
	case kind == "sse" && !has("transport"):
		return renameStep(at, key, "transport")
	case kind == "stdio" && has("command"), config.IsHTTPType(kind) && (has("url") || has("httpUrl") || has("serverUrl")):
		return &migrationStep{Change{key.Line, fmt.Sprintf("%q is removed", key.Value+": "+kind)},
			func(data []byte) ([]byte, error) { return yamledit.Unset(data, at...) }}
	}
	return nil
}
