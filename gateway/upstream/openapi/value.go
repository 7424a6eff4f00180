package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// object is a JSON object in the order of its members. The other values are []any, string, json.Number, bool and nil.
type object struct {
	keys   []string
	values map[string]any
}

func newObject(pairs ...any) *object {
	o := &object{values: make(map[string]any, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
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

func (o *object) set(key string, value any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// members returns the keys in their order; nil has none.
func (o *object) members() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

func (o *object) text(key string) string { s, _ := o.get(key).(string); return s }
func (o *object) flag(key string) bool   { b, _ := o.get(key).(bool); return b }
func (o *object) list(key string) []any  { l, _ := o.get(key).([]any); return l }
func (o *object) object(key string) *object {
	v, _ := o.get(key).(*object)
	return v
}

// texts returns the strings of a list.
func (o *object) texts(key string) (all []string) {
	for _, v := range o.list(key) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// parseJSON parses one JSON value within the limits of m; nil has none but the depth.
func parseJSON(data []byte, m *meter) (any, error) {
	p := jsonParser{json.NewDecoder(bytes.NewReader(data)), m}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the JSON value")
	}
	return v, nil
}

type jsonParser struct {
	dec   *json.Decoder
	meter *meter
}

func (p jsonParser) value(depth int) (any, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, p.explain(err)
	}
	if depth > maxDepth {
		return nil, beyond("is nested more than %d levels deep", maxDepth)
	}
	if p.meter != nil {
		if err := p.meter.node(); err != nil {
			return nil, err
		}
	}
	switch token {
	case json.Delim('{'):
		return p.object(depth)
	case json.Delim('['):
		return p.list(depth)
	}
	return token, nil
}

func (p jsonParser) object(depth int) (any, error) {
	o := newObject()
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return nil, p.explain(err)
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.set(key.(string), v) // the decoder accepts no other key
	}
	_, err := p.dec.Token()
	return o, err
}

func (p jsonParser) list(depth int) (any, error) {
	l := []any{}
	for p.dec.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	_, err := p.dec.Token()
	return l, err
}

func (p jsonParser) explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON is cut off")
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", p.dec.InputOffset(), err)
	}
	return err
}

// appendJSON appends a value in JSON.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, key := range v.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, key), ':')
			b = appendJSON(b, v.values[key])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, one)
		}
		return append(b, ']')
	case json.RawMessage:
		return append(b, v...)
	case string:
		return appendText(b, v)
	}
	data, err := json.Marshal(v)
	if err != nil { // a number out of range of JSON, which YAML has
		return append(b, "null"...)
	}
	return append(b, data...)
}

// appendText appends a string in JSON, without escaping HTML.
func appendText(b []byte, s string) []byte {
	w := bytes.NewBuffer(b)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string is always valid
	return bytes.TrimRight(w.Bytes(), "\n")
}

// texts returns a list of strings as a JSON list.
func list(texts []string) []any {
	all := make([]any, len(texts))
	for i, t := range texts {
		all[i] = t
	}
	return all
}
