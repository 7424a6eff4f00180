package toolcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"

	"sallyport/internal/approval"
)

// Canonical returns the canonical form of arguments for a tool with these parameter defaults: members in order, numbers
// normalized (1, 1.0 and 1e0 are equal), and no top-level members that are null or equal to their default. Arguments that it
// cannot parse are returned unchanged.
func Canonical(args json.RawMessage, defaults map[string]any) []byte {
	canonical, _, err := approval.FormatArguments(args)
	if err != nil {
		return Compact(args)
	}
	value, err := decodeNumbers(canonical)
	if err != nil {
		return canonical // halves of surrogate pairs follow the value
	}
	object, ok := value.(map[string]any)
	if !ok {
		return canonical
	}
	for name, v := range object {
		object[name] = normalNumbers(v)
		standard, known := defaults[name]
		if v == nil || known && reflect.DeepEqual(object[name], standard) {
			delete(object, name)
		}
	}
	short, err := json.Marshal(object)
	if err != nil {
		return canonical
	}
	return short
}

// Defaults returns the defaults of the top-level properties of an input schema.
func Defaults(input json.RawMessage) map[string]any {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(input) == 0 || json.Unmarshal(input, &schema) != nil {
		return nil
	}
	defaults := map[string]any{}
	for name, property := range schema.Properties {
		var p struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(property, &p) != nil || len(p.Default) == 0 {
			continue
		}
		if v, err := decodeNumbers(p.Default); err == nil {
			defaults[name] = normalNumbers(v)
		}
	}
	return defaults
}

func decodeNumbers(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// maxNumber is the longest number that is evaluated, in characters.
const maxNumber = 64

// normalNumbers normalizes each number in a value.
func normalNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return normalNumber(v)
	case []any:
		for i := range v {
			v[i] = normalNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = normalNumbers(v[name])
		}
	}
	return v
}

func normalNumber(n json.Number) json.Number {
	if len(n) > maxNumber {
		return n
	}
	f, _, err := big.ParseFloat(n.String(), 10, 512, big.ToNearestEven)
	if err != nil || f.MantExp(nil) > 1100 || f.MantExp(nil) < -1100 {
		return n
	}
	return json.Number(f.Text('g', -1))
}

// Compact returns JSON without white space, or args as they are if they are not JSON.
func Compact(args json.RawMessage) []byte {
	var short bytes.Buffer
	if json.Compact(&short, args) != nil {
		return args
	}
	return short.Bytes()
}
