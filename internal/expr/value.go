package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"cel.dev/cel-go/cel"
	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxDepth bounds the nesting of values.
const maxDepth = 200

// Errors of [Decode] besides invalid JSON.
var (
	// ErrDuplicate: an object has a duplicate key, of which different readers may take different values.
	ErrDuplicate = errors.New("an object has a key twice")
	// ErrDepth: values are nested too deep.
	ErrDepth = errors.New("values are nested too deep")
)

// ErrSize means that the value of an expression is too large.
var ErrSize = errors.New("the result is larger than 8 MiB")

var (
	errTooLarge = errors.New("a number is too large")
	errNoJSON   = errors.New("a text is not JSON")
)

// Decode reads one JSON value for an expression: a whole number is an int64, however it is written (1, 1.0, 1e0), and
// all others are a float64. An object with a duplicate key is an error, since an upstream may take the other value.
func Decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	value, err := decode(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return value, nil
}

func decode(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, ErrDepth
	}
	switch t := token.(type) {
	case json.Number:
		return number(t)
	case json.Delim:
		if t == '{' {
			return decodeObject(dec, depth)
		}
		return decodeList(dec, depth)
	}
	return token, nil
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the decoder guarantees a string
		if _, twice := object[name]; twice {
			return nil, ErrDuplicate
		}
		if object[name], err = decode(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return object, err
}

func decodeList(dec *json.Decoder, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		item, err := decode(dec, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err := dec.Token()
	return list, err
}

// maxWhole is the bound up to which a float64 represents each whole number exactly.
const maxWhole = 1 << 53

func number(n json.Number) (any, error) {
	if whole, err := n.Int64(); err == nil {
		return whole, nil
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return nil, errTooLarge
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxWhole {
		return int64(f), nil
	}
	return f, nil
}

// Unknown is a value that is not known yet. An evaluation that depends on it ends with [ErrUnknown].
type Unknown struct{}

// ErrUnknown means that an expression needs a value that is [Unknown].
var ErrUnknown = errors.New("it is not known yet")

// adapter converts Unknown values.
type adapter struct{ celtypes.Adapter }

// NativeToValue implements CEL's adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case Unknown:
		return celtypes.WrapErr(ErrUnknown)
	case map[string]any:
		return celtypes.NewStringInterfaceMap(a, v)
	case []any:
		return celtypes.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(value)
}

// bind converts a value for CEL.
func bind(value any) any {
	switch v := value.(type) {
	case func() (any, error):
		return func() ref.Val {
			value, err := v()
			if err != nil {
				return celtypes.WrapErr(err)
			}
			return celtypes.DefaultTypeAdapter.NativeToValue(bind(value))
		}
	case map[string]int64:
		counts, ok := celtypes.DefaultTypeAdapter.NativeToValue(v).(traits.Mapper)
		if !ok {
			return value
		}
		return countMap{counts}
	}
	return value
}

// countMap is a map in which missing keys have the value 0.
type countMap struct{ traits.Mapper }

// Get implements CEL's indexer.
func (t countMap) Get(key ref.Val) ref.Val {
	v, _ := t.Find(key)
	return v
}

// Find implements CEL's mapper.
func (t countMap) Find(key ref.Val) (ref.Val, bool) {
	if v, ok := t.Mapper.Find(key); ok {
		return v, true
	}
	return celtypes.IntZero, true
}

// maxSize bounds the value of an expression as JSON, in bytes, approximately.
const maxSize = 8 << 20

// native converts a CEL value to its JSON form.
func native(v ref.Val) (any, error) {
	n := converter{budget: maxSize}
	return n.value(v, 0)
}

// converter converts values within a size budget: a small expression can refer to a large value many times.
type converter struct{ budget int }

// take subtracts the bytes of one value from the budget.
func (n *converter) take(size int) error {
	if n.budget -= size; n.budget < 0 {
		return ErrSize
	}
	return nil
}

func (n *converter) value(v ref.Val, depth int) (any, error) {
	if depth > maxDepth {
		return nil, ErrDepth
	}
	if err := n.take(2); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case celtypes.Bool:
		return bool(v), nil
	case celtypes.Int:
		return int64(v), nil
	case celtypes.Uint:
		if uint64(v) > math.MaxInt64 {
			return nil, errTooLarge
		}
		return int64(v), nil
	case celtypes.Double:
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			return nil, errTooLarge
		}
		return float64(v), nil
	case celtypes.String:
		return string(v), n.take(len(v))
	case celtypes.Null:
		return nil, nil
	}
	return n.other(v, depth)
}

func (n *converter) other(v ref.Val, depth int) (any, error) {
	switch v := v.(type) {
	case celtypes.Timestamp:
		return v.Format(time.RFC3339Nano), nil
	case celtypes.Duration:
		return time.Duration(v.Duration).String(), nil
	case *celtypes.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return n.value(v.GetValue(), depth+1)
	case traits.Lister:
		return n.list(v, depth)
	case traits.Mapper:
		return n.object(v, depth)
	case *celtypes.Err:
		return nil, v
	}
	return nil, fmt.Errorf("a value of type %s has no form in JSON", v.Type().TypeName())
}

func (n *converter) list(v traits.Lister, depth int) (any, error) {
	list := []any{}
	for it := v.Iterator(); it.HasNext() == celtypes.True; {
		item, err := n.value(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

func (n *converter) object(v traits.Mapper, depth int) (any, error) {
	object := map[string]any{}
	for it := v.Iterator(); it.HasNext() == celtypes.True; {
		key := it.Next()
		name, ok := key.(celtypes.String)
		if !ok {
			return nil, errors.New("a map key is not a string")
		}
		if err := n.take(len(name) + 2); err != nil {
			return nil, err
		}
		item, err := n.value(v.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		object[string(name)] = item
	}
	return object, nil
}

// fits reports whether a value is of a type.
func fits(v any, want Type) bool {
	ok := true
	switch want {
	case Bool:
		_, ok = v.(bool)
	case Int:
		_, ok = v.(int64)
	case Double:
		_, ok = v.(float64)
	case String, Time:
		_, ok = v.(string)
	case List:
		_, ok = v.([]any)
	case Map:
		_, ok = v.(map[string]any)
	case Strings:
		ok = allFit(v, String)
	case Bools:
		ok = allFit(v, Bool)
	case Counts:
		ok = allFit(v, Int)
	}
	return ok
}

// allFit reports whether all elements of a list or map are of a type.
func allFit(v any, want Type) bool {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if !fits(item, want) {
				return false
			}
		}
		return want == String
	case map[string]any:
		for _, item := range v {
			if !fits(item, want) {
				return false
			}
		}
		return want != String
	}
	return false
}

// kindOf names the type of a value.
func kindOf(v any) string {
	for _, t := range []Type{Bool, Int, Double, String, List, Map} {
		if fits(v, t) {
			return "a value of type " + string(t)
		}
	}
	return "nothing"
}

// typeName returns our name for a CEL type.
func typeName(t *cel.Type) string {
	for _, known := range []Type{Bool, Int, Double, String, Time, Strings, Bools, Counts, List, Map} {
		if t.IsExactType(celType(known)) {
			return string(known)
		}
	}
	return cel.FormatCELType(t)
}

// Describe names the sort of a value, for people: "a number", "a list".
func Describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "an object"
}
