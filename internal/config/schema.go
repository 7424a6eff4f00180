package config

import (
	_ "embed"
	"slices"
)

//go:embed upstreams.schema.json
var schemaText []byte

// Schema returns the JSON Schema (draft 2020-12) of upstreams.yaml, for editors. A test makes it from the tables of
// keys that the decoder has.
func Schema() []byte { return slices.Clone(schemaText) }
