package execution

import (
	"strings"
	"testing"

	"sallyport/internal/tool"
)

// Texts that are emitted come before a model: of many, those beyond a limit go as files, whole.
func TestEmittedTexts(t *testing.T) {
	var e Result
	for range 30 {
		e.Emitted = append(e.Emitted, tool.Content{Type: "text", Text: strings.Repeat("x", 60<<10)})
	}
	e.Emitted = append(e.Emitted, tool.Content{Type: "resource", MIME: "text/csv", Name: "a.csv", Text: strings.Repeat("y", 10<<10)}, tool.Content{Type: "text", Text: "last"})
	texts, whole := 0, 0
	for i, c := range e.ClientContent() {
		texts += len(c.Text)
		whole += len(c.Text) + len(c.Data)
		if c.Text == "" && (c.Type != "resource" || c.URI == "" || c.MIME == "") {
			t.Errorf("item %d: %+v", i, c)
		}
	}
	if texts > maxTexts || whole != 30*60<<10+10<<10+4 {
		t.Errorf("%d bytes of text, %d of all", texts, whole)
	}
	if said := emittedText(e.Emitted); !strings.Contains(said, "; 29 texts beyond 66 KB as files)") {
		t.Error(said)
	}
	if said := emittedText(e.Emitted[30:]); strings.Contains(said, "as files") {
		t.Error(said)
	}
}
