package mcpapp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/mcpapp"
)

func TestShownURI(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ upstream, uri, shown string }{
		{"a", "ui://main", "ui://a/main"},
		{"a", "ui://b/main?x=1#y", "ui://a/b/main?x=1#y"},
		{"a", "ui://", "ui://a/"},
		{"a", "ui:///x", "ui://a//x"},
		{"a", "ui://é/{id}", "ui://a/é/{id}"},
		{"a", "UI://main", ""},
		{"a", "http://main", ""},
		{"a", "ui://a\nb", ""},
		{"a", "ui://\xff", ""},
		{"a", "ui://" + strings.Repeat("x", 2100), ""},
	} {
		shown, ok := mcpapp.ShownURI(test.upstream, test.uri)
		if shown != test.shown || ok != (test.shown != "") {
			t.Errorf("%q is shown as %q, not %q", test.uri, shown, test.shown)
		}
		if upstream, uri, split := mcpapp.SplitURI(shown); split != ok || ok && (upstream != test.upstream || uri != test.uri) {
			t.Errorf("%q is %q of %q", shown, uri, upstream)
		}
	}
}

func TestVisibility(t *testing.T) {
	t.Parallel()
	for visibility, appOnly := range map[string]bool{
		`["app"]`: true, `[]`: true, `["model","app"]`: false, `["model"]`: false, `["other"]`: true, `"app"`: false, `null`: false, `[1]`: false, `{}`: false,
	} {
		if got := mcpapp.AppOnly(json.RawMessage(`{"name":"t","_meta":{"ui":{"visibility":` + visibility + `}}}`)); got != appOnly {
			t.Errorf("%s: %v", visibility, got)
		}
	}
}

// FuzzRewrite: a rewritten definition is valid JSON, names only the upstream's interfaces, and has none for other clients.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"name":"t","_meta":{"ui":{"resourceUri":"ui://b/x","visibility":["app"]},"ui/resourceUri":"ui://b/x"}}`))
	f.Add([]byte(`{"_meta":{"ui":1},"_meta":{"ui":{"resourceUri":[]}}}`))
	f.Fuzz(func(t *testing.T, definition []byte) {
		got, err := mcpapp.Rewrite("a", definition)
		if err != nil || !json.Valid(definition) {
			return
		}
		if !json.Valid(got.Shown) || !json.Valid(got.Text) {
			t.Fatalf("%s became %s and %s", definition, got.Shown, got.Text)
		}
		shown, text := metaOf(got.Shown), metaOf(got.Text)
		for _, raw := range []json.RawMessage{shown["ui/resourceUri"], members(shown["ui"])["resourceUri"]} {
			var uri string
			if raw != nil && (json.Unmarshal(raw, &uri) != nil || !strings.HasPrefix(uri, "ui://a/")) {
				t.Errorf("%s names %s", definition, raw)
			}
		}
		if text["ui"] != nil || text["ui/resourceUri"] != nil {
			t.Errorf("%s has an interface for clients that show none: %s", definition, got.Text)
		}
	})
}

func metaOf(definition json.RawMessage) map[string]json.RawMessage {
	return members(members(definition)["_meta"])
}

func members(raw json.RawMessage) (all map[string]json.RawMessage) {
	_ = json.Unmarshal(raw, &all) // none for another value
	return all
}
