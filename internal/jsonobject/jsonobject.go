// Package jsonobject decodes JSON and keeps the order of the members of objects. [Decode] returns values of these types: *[Object],
// []any, string, [json.Number], bool and nil.
package jsonobject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Object is a JSON object with ordered members. The zero value is empty. All methods that read it accept nil as an empty object.
// It is not safe for concurrent use while it is changed.
type Object struct {
	keys   []string
	values map[string]any
}

// Of returns an object with the members of pairs, each a key and a value.
func Of(pairs ...any) *Object {
	o := &Object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// Set sets a member. One that exists keeps its position.
func (o *Object) Set(key string, value any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Remove removes a member. A missing one is not an error.
func (o *Object) Remove(key string) {
	if !o.Has(key) {
		return
	}
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// Clone copies the object without the named members. The values are shared.
func (o *Object) Clone(without ...string) *Object {
	c := &Object{}
	for _, k := range o.Keys() {
		c.Set(k, o.values[k])
	}
	for _, k := range without {
		c.Remove(k)
	}
	return c
}

// Keys returns the keys in order, nil for none. The caller must not change them.
func (o *Object) Keys() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// Values returns the values by key, nil for none. The caller must not change them.
func (o *Object) Values() map[string]any {
	if o == nil {
		return nil
	}
	return o.values
}

// Get returns a member, nil if it is missing.
func (o *Object) Get(key string) any { return o.Values()[key] }

// Has reports whether there is such a member.
func (o *Object) Has(key string) bool {
	_, ok := o.Values()[key]
	return ok
}

// HasAny reports whether there is one of these members.
func (o *Object) HasAny(keys ...string) bool { return slices.ContainsFunc(keys, o.Has) }

// Object returns a member that is an object, nil if it is missing or something else.
func (o *Object) Object(key string) *Object { v, _ := o.Get(key).(*Object); return v }

// List returns a member that is a list, nil if it is missing or something else.
func (o *Object) List(key string) []any { v, _ := o.Get(key).([]any); return v }

// Text returns a member that is a string, "" if it is missing or something else.
func (o *Object) Text(key string) string { v, _ := o.Get(key).(string); return v }

// Flag returns a member that is true or false, false if it is missing or something else.
func (o *Object) Flag(key string) bool { v, _ := o.Get(key).(bool); return v }

// Texts returns the strings of a member that is a list, without its other values.
func (o *Object) Texts(key string) (texts []string) {
	for _, v := range o.List(key) {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// MarshalJSON implements [json.Marshaler]: the members are in their order.
func (o *Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range o.Keys() {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(o.values[key])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// Errors of Decode for text that is not one JSON value.
var (
	ErrCut  = errors.New("the JSON is cut off")
	ErrMore = errors.New("more follows the JSON value")
)

// Check is called for each value before it is decoded, with the number of objects and lists around it, and ends Decode with its
// error. It bounds the depth and the number of values, since a value takes much more memory than its text.
type Check func(depth int, container bool) error

// Decode decodes one JSON value. A duplicate key keeps its first position and, as in encoding/json, its last value.
func Decode(data []byte, check Check) (any, error) {
	d := decoder{json.NewDecoder(bytes.NewReader(data)), check}
	d.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrMore
	}
	return v, nil
}

type decoder struct {
	*json.Decoder

	check Check
}

func (d decoder) value(depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, d.explain(err)
	}
	object, list := token == json.Delim('{'), token == json.Delim('[')
	if err := d.check(depth, object || list); err != nil {
		return nil, err
	}
	switch {
	case object:
		return d.object(depth + 1)
	case list:
		return d.list(depth + 1)
	}
	return token, nil
}

func (d decoder) object(depth int) (any, error) {
	o := &Object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, d.explain(err)
		}
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		o.Set(key.(string), v) // the decoder accepts no other key
	}
	return o, d.end()
}

func (d decoder) list(depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, d.end()
}

// end reads the end of an object or a list.
func (d decoder) end() error {
	if _, err := d.Token(); err != nil {
		return d.explain(err)
	}
	return nil
}

func (d decoder) explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	return err
}
