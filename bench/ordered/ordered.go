// Package ordered reads and writes JSON objects and keeps the order of their members:
// a schema is to stay as its author wrote it, but for what is taken out.
package ordered

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Object is a JSON object.
type Object []Member

// Member is a key with its value.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Read reads an object; ok is false if the text is none.
func Read(raw json.RawMessage) (o Object, ok bool) {
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
		o = append(o, Member{name, value})
	}
	return o, true
}

// Get returns a member's value.
func (o Object) Get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.Key == key {
			return m.Value, true
		}
	}
	return nil, false
}

// Set gives a member a value where it stands, or at the end.
func (o Object) Set(key string, value json.RawMessage) Object {
	for i := range o {
		if o[i].Key == key {
			o[i].Value = value
			return o
		}
	}
	return append(o, Member{key, value})
}

// Without takes members out.
func (o Object) Without(keys ...string) Object {
	return slices.DeleteFunc(o, func(m Member) bool { return slices.Contains(keys, m.Key) })
}

// Encode is the object as JSON. Values stay as they were written.
func (o Object) Encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(m.Key)
		if err != nil {
			panic(err) // it is a string
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
