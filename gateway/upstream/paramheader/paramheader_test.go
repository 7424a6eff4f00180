package paramheader

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	property := func(a string) string { return `{"type":"object","properties":{"a":` + a + `}}` }
	for schema, fine := range map[string]bool{
		property(`{"type":"string","x-mcp-header":"A-1"}`):                                                       true,
		property(property(`{"type":"x","description":"none"}`)):                                                  true,
		property(`{"type":"string","x-mcp-header":""}`):                                                          false,
		property(`{"type":"string","x-mcp-header":7}`):                                                           false,
		property(`{"type":"object","x-mcp-header":"A"}`):                                                         false,
		property(`{"type":"number","x-mcp-header":"A"}`):                                                         false,
		property(`{"type":"string","x-mcp-header":"A: x\r\nB"}`):                                                 false,
		property(`{"type":"string","x-mcp-header":"Größe"}`):                                                     false,
		property(`{"type":"string","x-mcp-header":"A"},"b":` + property(`{"type":"string","x-mcp-header":"a"}`)): false,
	} {
		if err := Check(json.RawMessage(schema)); (err == nil) != fine {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`), []byte(`{"a":" ü"}`))
	f.Add([]byte(`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`), []byte(`{"a":{"b":1e300}}`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		for name, value := range Of(schema, args) {
			if strings.ContainsFunc(name, notToken) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("header %q: %q", name, value)
			}
		}
	})
}
