package config

import (
	_ "embed"
	"encoding/json"
	"slices"

	"sallyport/internal/keyschema"
	"sallyport/internal/packed"
)

//go:embed upstreams.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of upstreams.yaml, for editors. A test makes it from the tables of
// keys that the decoder has.
func Schema() []byte { return slices.Clone(packed.Read(schemaText)) }

// KeySchema returns the schema of the keys.
func KeySchema() (root keyschema.Node) {
	if err := json.Unmarshal(packed.Read(schemaText), &root); err != nil {
		return keyschema.Node{}
	}
	return root
}

// upstreamKeys returns the keys of an upstream.
func upstreamKeys() map[string]keyschema.Node {
	return KeySchema().Properties["upstreams"].Member("").Properties
}
