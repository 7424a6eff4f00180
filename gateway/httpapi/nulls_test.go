package httpapi

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestNoNulls: where the document says array or object, the least answer of each route and the least event of each stream has one,
// never null: clients go through them.
func TestNoNulls(t *testing.T) {
	t.Parallel()
	s := newSchemas(t)
	all := map[string]reflect.Type{}
	for _, r := range (&api{}).routes() {
		if r.out != nil {
			all[r.method+" "+r.path] = r.out
		}
		for name, event := range r.events {
			all[r.method+" "+r.path+" "+name] = event
		}
	}
	for name, of := range all {
		answer, err := encodeJSON(reflect.Zero(of).Interface())
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(answer, &value); err != nil {
			t.Fatal(err)
		}
		wantLists(t, s, name, s.of(of, false), value)
	}
	if len(all) < 30 {
		t.Errorf("only %d types were looked at", len(all))
	}
}

func wantLists(t *testing.T, s *schemas, at string, schema object, value any) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		if fields, ok := value.(map[string]any); ok {
			properties, _ := s.parts[ref[len("#/components/schemas/"):]]["properties"].(object)
			for name, of := range properties {
				if field, there := fields[name]; there {
					of, _ := of.(object)
					wantLists(t, s, at+"."+name, of, field)
				}
			}
		}
		return
	}
	if value == nil && (schema["type"] == "array" || schema["type"] == "object") {
		t.Errorf("%s: null where the document says %v", at, schema["type"])
	}
}
