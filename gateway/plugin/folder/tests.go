package folder

import (
	"encoding/json"
	"path/filepath"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// TestsName is the name of the file with the tests of a plugin.
const TestsName = "tests.yaml"

// Test is a call of a function, and what it must return.
type Test struct {
	// Line is its line in the file.
	Line int
	Run  string
	// With are the arguments: an object for tools and steps, a list for all other functions.
	With json.RawMessage
	// Want is the value, nil for any; Error is a part of the error, "" for none.
	Want  json.RawMessage
	Error string
}

// Tests returns the tests of a plugin; none if it has no file with tests. Errors are *[yamlstrict.Error]s.
func (p *Plugin) Tests() ([]Test, error) {
	data, ok := p.Content[TestsName]
	if !ok {
		return nil, nil
	}
	src := yamlstrict.NewSource(filepath.Join(p.Dir, TestsName), data)
	root, err := src.Document("is empty; it needs a list of tests")
	if err != nil {
		return nil, err
	}
	d := decoder{&yamlstrict.Decoder{Source: src}}
	tests := yamlstrict.List(d.Decoder, atPath{}, root, d.test)
	return tests, d.Err()
}

func (d decoder) test(at atPath, n *yaml.Node, t *Test) {
	t.Line, t.With = n.Line, json.RawMessage("{}")
	seen := d.Fields(at, n, []key{
		{"run", d.function(&t.Run)},
		{"with", d.json(&t.With)},
		{"want", d.json(&t.Want)},
		{"error", d.Text(&t.Error)},
	})
	d.needs(at, n, seen, "run")
}

// json reads any value.
func (d decoder) json(into *json.RawMessage) yamlstrict.Reader {
	return func(at atPath, n *yaml.Node) {
		if !d.AllowedDeep(at, n) {
			return
		}
		var value any
		err := n.Decode(&value)
		if err == nil {
			*into, err = json.Marshal(value)
		}
		if err != nil {
			d.Fail(at, n, "it has no form in JSON")
		}
	}
}
