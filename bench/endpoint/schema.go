package endpoint

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Schema makes a tool's schema one that endpoints take, as clients of MCP do. The
// endpoints of OpenAI and of Anthropic refuse a whole request for one tool whose
// schema is no object, has no properties, or has oneOf, anyOf, allOf, enum or not at
// its top; some do for a $schema, which tells a model nothing. What branches at the
// top say of properties is put together, so that a model still sees their names; what
// they demand is left to the server. All below stays, and the order of everything.
func Schema(raw json.RawMessage) json.RawMessage {
	top, ok := members(raw)
	if !ok {
		top = nil
	}
	properties, _ := top.get("properties")
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		branches, _ := top.get(key)
		properties = union(properties, branches)
	}
	if _, ok := members(properties); !ok {
		properties = json.RawMessage("{}")
	}
	top = slices.DeleteFunc(top, func(m member) bool {
		return slices.Contains([]string{"$schema", "oneOf", "anyOf", "allOf", "enum", "not"}, m.key)
	})
	return top.set("type", json.RawMessage(`"object"`)).set("properties", properties).encode()
}

// union adds to properties those of a list of schemas that it does not have.
func union(properties, branches json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(branches, &list) != nil {
		return properties
	}
	all, _ := members(properties)
	for _, branch := range list {
		schema, _ := members(branch)
		more, _ := schema.get("properties")
		each, _ := members(more)
		for _, m := range each {
			if _, has := all.get(m.key); !has {
				all = append(all, m)
			}
		}
	}
	return all.encode()
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// members reads an object; ok is false if it is none.
func members(raw json.RawMessage) (o object, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); !json.Valid(raw) || err != nil || open != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return nil, false
		}
		name, _ := key.(string) // it is nothing else
		o = append(o, member{name, value})
	}
	return o, true
}

func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

func (o object) set(key string, value json.RawMessage) object {
	for i := range o {
		if o[i].key == key {
			o[i].value = value
			return o
		}
	}
	return append(o, member{key, value})
}

func (o object) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			panic(err) // it is a string
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
