package config

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

//go:embed upstreams.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of upstreams.yaml, for editors. A test makes it from the tables of
// keys that the decoder has.
func Schema() []byte { return slices.Clone(schemaText) }

// A schemaNode is a part of the schema: the keys of a mapping, the values of other mappings and of lists, defaults.
type schemaNode struct {
	Properties           map[string]schemaNode
	AdditionalProperties json.RawMessage
	Items                json.RawMessage
	AnyOf                []schemaNode
	Required             []string
	Default              json.RawMessage
	// Absent: without the mapping, the defaults of its keys do not count.
	Absent bool `json:"x-absent"`
}

func readSchema() (root schemaNode) {
	if err := json.Unmarshal(schemaText, &root); err != nil {
		return schemaNode{}
	}
	return root
}

// upstreamKeys returns the keys of an upstream.
func upstreamKeys() map[string]schemaNode {
	return readSchema().Properties["upstreams"].member("").Properties
}

// owners returns the paths of the mappings that have a key, except for the top level.
func (n schemaNode) owners(at, word string) (found []string) {
	if _, ok := n.Properties[word]; ok && at != "" {
		found = append(found, at)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		found = append(found, n.Properties[name].owners(strings.TrimPrefix(at+"."+name, "."), word)...)
	}
	for _, other := range n.AnyOf {
		found = append(found, other.owners(at, word)...)
	}
	if len(n.AdditionalProperties) > 0 {
		found = append(found, n.member("\x00").owners(at+".NAME", word)...)
	}
	if len(n.Items) > 0 {
		found = append(found, n.item().owners(at+"[]", word)...)
	}
	return found
}
