package codegen

import (
	"encoding/json"

	"sallyport/internal/tool"
)

// ExampleArguments returns arguments for a call of a tool that its definition itself gives: none where none is required,
// else its example, or the example, default, constant or first allowed value of each required parameter. ok reports
// whether there are such arguments.
func ExampleArguments(t tool.Tool) (arguments json.RawMessage, ok bool) {
	schema, err := decode(t.Input)
	root, isObject := schema.(*object)
	if err != nil || !isObject {
		return nil, false
	}
	values, _ := examples(root)
	given := map[string]any{}
	for _, name := range root.Texts("required") {
		value, known := values[name]
		if !known {
			return nil, false
		}
		given[name] = plainValue(value)
	}
	arguments, err = json.Marshal(given)
	return arguments, err == nil
}

// plainValue returns a decoded value with maps in place of ordered objects.
func plainValue(v any) any {
	switch v := v.(type) {
	case *object:
		members := make(map[string]any, len(v.Values()))
		for name, member := range v.Values() {
			members[name] = plainValue(member)
		}
		return members
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plainValue(element)
		}
		return list
	}
	return v
}
