package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// bounds are the constraints in the tags of a request's field: min and max of a number, max of a text in bytes, enum of
// its values, and type:"object" for raw JSON. The OpenAPI document has them too.
type bounds struct {
	least, most float64
	words       []string
	object      bool
}

func boundsOf(f reflect.StructField) (b bounds) {
	b.least, _ = strconv.ParseFloat(f.Tag.Get("min"), 64)
	b.most, _ = strconv.ParseFloat(f.Tag.Get("max"), 64)
	if words := f.Tag.Get("enum"); words != "" {
		b.words = strings.Split(words, ",")
	}
	b.object = f.Tag.Get("type") == "object"
	return b
}

// violation describes a violation, in words that follow the field's name, "" for none.
func (b bounds) violation(v reflect.Value) string {
	switch {
	case b.object && v.Bytes()[0] != '{':
		return "must be an object"
	case len(b.words) > 0 && !slices.Contains(b.words, v.String()):
		return "must be " + strings.Join(b.words, " or ")
	case b.most == 0:
		return ""
	case v.Kind() == reflect.String && float64(v.Len()) > b.most:
		return "must be at most " + number64(b.most) + " bytes"
	case v.CanInt() && (float64(v.Int()) < b.least || float64(v.Int()) > b.most), v.CanFloat() && !(v.Float() >= b.least && v.Float() <= b.most):
		return "must be " + number64(b.least) + " to " + number64(b.most)
	}
	return ""
}

func number64(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// checkFields refuses a body without a required field (one without omitempty or omitzero), or with a value out of its
// bounds. there holds the members of the body; null counts as missing.
func checkFields(body reflect.Value, there map[string]json.RawMessage) error {
	for f, v := range body.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if given, ok := there[name]; !ok || string(given) == "null" {
			if !strings.Contains(options, "omit") {
				return invalid("the body needs " + name)
			}
			continue
		}
		if v.IsZero() && strings.Contains(options, "omit") {
			continue // some clients send all fields
		}
		if wrong := boundsOf(f).violation(v); wrong != "" {
			return invalid(name + " " + wrong)
		}
	}
	return nil
}
