package config

import (
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// TestDocsSettings loads each settings block of these pages. A page about workflows also has definitions.
func TestDocsSettings(t *testing.T) {
	env := func(name string) (string, bool) { return "value-of-" + name, true }
	for _, page := range []string{"privacy", "approvals", "resume", "workflows"} {
		tried := 0
		for _, e := range testutil.Examples(t, "docs/how-to/"+page+".md") {
			if e.Language != "yaml" || page == "workflows" && !strings.HasPrefix(e.Text, "workflows:") {
				continue
			}
			tried++
			text := e.Text
			if !strings.Contains(text, "upstreams:") { // it is a part of the file
				text += "upstreams: {crm: {command: crm-mcp}}\n"
			}
			if _, err := Parse(page+".md", []byte(text), env); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		if tried == 0 {
			t.Errorf("%s has no settings", page)
		}
	}
}
