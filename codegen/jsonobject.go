package codegen

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

const (
	// maxSchemaBytes is the maximum length of a schema; the longest of a real server has 90 KB.
	maxSchemaBytes = 2 << 20
	// maxNesting is the maximum nesting of JSON.
	maxNesting = 200
)

var errNesting = errors.New("nested too deeply")

// object is a JSON object with ordered members. All methods that read it accept nil as
// an empty object.
type object struct {
	keys   []string
	values map[string]any
}

// decode parses one JSON value and keeps the order of object members. Values are
// *object, []any, string, json.Number, bool and nil. A duplicate key keeps its first
// position and, as in encoding/json, its last value.
func decode(data []byte) (any, error) {
	if len(data) > maxSchemaBytes {
		return nil, errors.New("too long")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return decodeObject(dec, depth+1)
	case json.Delim('['):
		return decodeArray(dec, depth+1)
	}
	return tok, nil
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	o := &object{}
	if depth > maxNesting {
		return nil, errNesting
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string) // the decoder accepts only strings here
		v, err := decodeValue(dec, depth)
		if err != nil {
			return nil, err
		}
		o.set(key, v)
	}
	_, err := dec.Token()
	return o, err
}

func decodeArray(dec *json.Decoder, depth int) (any, error) {
	list := []any{}
	if depth > maxNesting {
		return nil, errNesting
	}
	for dec.More() {
		v, err := decodeValue(dec, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, err
}

func (o *object) set(key string, v any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

func (o *object) has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.values[key]
	return ok
}

func (o *object) hasAny(keys ...string) bool {
	return slices.ContainsFunc(keys, o.has)
}

func (o *object) object(key string) *object {
	v, _ := o.get(key).(*object)
	return v
}

func (o *object) list(key string) []any {
	v, _ := o.get(key).([]any)
	return v
}

func (o *object) text(key string) string {
	v, _ := o.get(key).(string)
	return v
}

// strings returns the strings in an array member and ignores other values.
func (o *object) strings(key string) []string {
	var texts []string
	for _, v := range o.list(key) {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// members returns the keys in order, nil for a nil object.
func (o *object) members() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// clone copies the object without the named members; the values are shared.
func (o *object) clone(without ...string) *object {
	c := &object{}
	for _, k := range o.members() {
		c.set(k, o.values[k])
	}
	for _, k := range without {
		c.remove(k)
	}
	return c
}

func (o *object) remove(key string) {
	if !o.has(key) {
		return
	}
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}
