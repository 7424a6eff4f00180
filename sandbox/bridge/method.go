package bridge

import (
	"encoding/json"
	"fmt"

	"sallyport/internal/tool"
)

// checkMethod returns an error for methods that programs may not call: those that change an
// upstream's state for all callers, and those with a deferred answer.
func checkMethod(id tool.ID) error {
	switch id.Method() {
	case "tools/call", tool.ListResources, tool.ListTemplates, tool.ReadResource, tool.ListPrompts, tool.GetPrompt:
		return nil
	}
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("a program cannot ask for %s", id)}
}

// valueOf converts a result to the program's value.
func valueOf(id tool.ID, result tool.Result) tool.Value {
	switch id.Method() {
	case tool.ReadResource:
		return contents(result)
	case tool.ListResources:
		return listField(result, "resources")
	case tool.ListTemplates:
		return listField(result, "resourceTemplates")
	case tool.ListPrompts:
		return listField(result, "prompts")
	case tool.GetPrompt:
		return tool.Value{JSON: rawResult(result)}
	}
	return result.Value()
}

// contents returns the content of a resource. A text is always a string, even if it is
// JSON, so that the value's type does not depend on it.
func contents(result tool.Result) tool.Value {
	parts := make([]tool.Value, len(result.Content))
	for i, c := range result.Content {
		if c.Data != nil {
			parts[i].Blob = &tool.Blob{MIME: c.MIME, Data: c.Data, URI: c.URI, Name: c.Name}
			continue
		}
		text, err := appendJSON(nil, c.Text)
		if err != nil {
			panic(err) // a string can always be encoded
		}
		parts[i].JSON = text
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return tool.Value{Parts: parts}
}

// rawResult returns the complete result as JSON.
func rawResult(result tool.Result) json.RawMessage {
	if len(result.Structured) > 0 {
		return result.Structured
	}
	return result.Raw
}

// listField returns the list in a field of the result, empty if there is none.
func listField(result tool.Result, name string) tool.Value {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(rawResult(result), &fields); err != nil || len(fields[name]) == 0 {
		return tool.Value{JSON: json.RawMessage("[]")}
	}
	return tool.Value{JSON: fields[name]}
}
