// Package lists prepares values for JSON readers in other languages. encoding/json writes a nil slice or map as null,
// which a reader that expects an array or an object cannot iterate over.
package lists

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// FillNil returns a value with the JSON of v, but with an empty array or object where a nil slice or map of v would be
// null. It does not change v. Byte slices and types with their own marshalling are left alone.
func FillNil(v any) any {
	if v == nil {
		return nil
	}
	from := reflect.ValueOf(v)
	to := reflect.New(from.Type()).Elem()
	to.Set(fillValue(from))
	return to.Interface()
}

var (
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
)

func fillValue(v reflect.Value) reflect.Value {
	t := v.Type()
	if marshalsItself(t) || marshalsItself(reflect.PointerTo(t)) {
		return v
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fillPointer(v)
	case reflect.Interface:
		if !v.IsNil() {
			return fillValue(v.Elem())
		}
	case reflect.Struct:
		return fillStruct(v)
	case reflect.Slice:
		return fillSlice(v)
	case reflect.Array:
		all := reflect.New(t).Elem()
		for i := range v.Len() {
			all.Index(i).Set(fillValue(v.Index(i)))
		}
		return all
	case reflect.Map:
		return fillMap(v)
	}
	return v
}

// marshalsItself reports whether t has its own marshalling.
func marshalsItself(t reflect.Type) bool { return t.Implements(jsonWriter) || t.Implements(textWriter) }

func fillPointer(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	to := reflect.New(v.Type().Elem())
	to.Elem().Set(fillValue(v.Elem()))
	return to.Convert(v.Type())
}

func fillStruct(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	fillFields(to)
	return to
}

func fillFields(of reflect.Value) {
	for i := range of.NumField() {
		field, value := of.Type().Field(i), of.Field(i)
		_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && field.Type.Kind() == reflect.Struct && !field.IsExported():
			fillFields(value) // its exported fields can be set, it cannot
		case !field.IsExported(), value.IsZero() && strings.Contains(options, "omit"):
		default:
			value.Set(fillValue(value))
		}
	}
}

func fillSlice(v reflect.Value) reflect.Value {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return v
	}
	all := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	for i := range v.Len() {
		all.Index(i).Set(fillValue(v.Index(i)))
	}
	return all
}

func fillMap(v reflect.Value) reflect.Value {
	all := reflect.MakeMapWithSize(v.Type(), v.Len())
	for key, value := range v.Seq2() {
		all.SetMapIndex(key, fillValue(value))
	}
	return all
}
