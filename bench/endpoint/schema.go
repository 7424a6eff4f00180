package endpoint

import (
	"encoding/json"

	"sallyport/bench/ordered"
)

// Schema makes a tool's schema one that endpoints take, as clients of MCP do. The
// endpoints of OpenAI and of Anthropic refuse a whole request for one tool whose
// schema is no object, has no properties, or has oneOf, anyOf, allOf, enum or not at
// its top; some do for a $schema, which tells a model nothing. What branches at the
// top say of properties is put together, so that a model still sees their names; what
// they demand is left to the server. All below stays, and the order of everything.
func Schema(raw json.RawMessage) json.RawMessage {
	top, _ := ordered.Read(raw)
	properties, _ := top.Get("properties")
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		branches, _ := top.Get(key)
		properties = union(properties, branches)
	}
	if _, ok := ordered.Read(properties); !ok {
		properties = json.RawMessage("{}")
	}
	top = top.Without("$schema", "oneOf", "anyOf", "allOf", "enum", "not")
	return top.Set("type", json.RawMessage(`"object"`)).Set("properties", properties).Encode()
}

// union adds to properties those of a list of schemas that it does not have.
func union(properties, branches json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(branches, &list) != nil {
		return properties
	}
	all, _ := ordered.Read(properties)
	for _, branch := range list {
		schema, _ := ordered.Read(branch)
		more, _ := schema.Get("properties")
		each, _ := ordered.Read(more)
		for _, m := range each {
			if _, has := all.Get(m.Key); !has {
				all = append(all, m)
			}
		}
	}
	return all.Encode()
}
