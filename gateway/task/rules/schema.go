package rules

import (
	"encoding/json"
	"maps"
	"slices"

	"sallyport/internal/tool"
)

// schema is a JSON Schema as far as rules understand it.
type schema struct {
	Type       any               `json:"type"`
	Format     string            `json:"format"`
	Enum       []any             `json:"enum"`
	Const      any               `json:"const"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Default    json.RawMessage   `json:"default"`
}

func parse(data json.RawMessage) (s schema) {
	_ = json.Unmarshal(data, &s) // a schema that cannot be read has no parameters
	return s
}

// kind returns the type of a value that is not null, "" if any.
func (s schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
	}
	for _, one := range s.AnyOf {
		if k := one.kind(); k != "null" && k != "" {
			return k
		}
	}
	return ""
}

func keysOf(t tool.Tool) []string { return slices.Sorted(maps.Keys(parse(t.Input).Properties)) }
