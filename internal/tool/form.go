package tool

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Form says how [Result.Value] reads the results of a tool. The zero value is for a tool about which nothing is known.
type Form struct {
	// Wrapped says that the structured content is {"result": VALUE}.
	Wrapped bool
	// Numbers says that a text that is a number is a number: the tool declares numbers and no texts.
	Numbers bool
	// Texts says that a text is a text also if it is true or false: the tool gives texts, and null.
	Texts bool
}

// ResultSchema returns the JSON Schema of a tool's values, and whether it is wrapped. MCP wants structured content to be
// an object, so many servers put any other value into an object with "result" as its only member. Programs get the value.
func (t Tool) ResultSchema() (schema json.RawMessage, wrapped bool) {
	var outer struct {
		Properties  map[string]json.RawMessage `json:"properties"`
		Required    []string                   `json:"required"`
		Defs        json.RawMessage            `json:"$defs"`
		Definitions json.RawMessage            `json:"definitions"`
		FastMCP     bool                       `json:"x-fastmcp-wrap-result"`
	}
	if !bytes.Contains(t.Output, []byte(`"result"`)) || json.Unmarshal(t.Output, &outer) != nil || len(outer.Properties) != 1 {
		return t.Output, false
	}
	value, has := outer.Properties["result"]
	if !has || !outer.FastMCP && (len(outer.Required) != 1 || outer.Required[0] != "result") {
		return t.Output, false
	}
	return withDefinitions(value, map[string]json.RawMessage{"$defs": outer.Defs, "definitions": outer.Definitions}), true
}

// withDefinitions returns a part of a schema with the definitions that it may refer to.
func withDefinitions(part json.RawMessage, more map[string]json.RawMessage) json.RawMessage {
	part = bytes.TrimSpace(part)
	for key, defs := range more {
		if rest, object := bytes.CutPrefix(part, []byte("{")); object && defs != nil && !bytes.Contains(part, []byte(`"`+key+`":`)) {
			comma := ","
			if strings.HasPrefix(strings.TrimSpace(string(rest)), "}") {
				comma = ""
			}
			part = []byte(`{"` + key + `":` + string(defs) + comma + string(rest))
		}
	}
	return part
}

// unwrapped returns the value in {"result": VALUE}, and structured itself if it is something else.
func unwrapped(structured json.RawMessage) json.RawMessage {
	var outer map[string]json.RawMessage
	if json.Unmarshal(structured, &outer) != nil || len(outer) != 1 || outer["result"] == nil {
		return structured
	}
	return outer["result"]
}

// IsNumber reports whether a text is a number in JSON; "007" is none.
func IsNumber(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && len(text) <= 40 && json.Valid([]byte(text))
}
