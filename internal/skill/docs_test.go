package skill_test

import (
	"testing"

	"sallyport/internal/skill"
	"sallyport/internal/testutil"
)

// TestDocs reads the front matter in docs/how-to/skills.md.
func TestDocs(t *testing.T) {
	tried := 0
	for _, e := range testutil.Examples(t, "docs/how-to/skills.md") {
		if e.Language != "yaml" {
			continue
		}
		tried++
		front, _, err := skill.Parse([]byte(e.Text))
		if err != nil || front.Name == "" || front.Version != 3 || len(front.Functions) != 1 || len(front.Tools) != 1 {
			t.Errorf("%+v, %v", front, err)
		}
	}
	if tried != 1 {
		t.Errorf("%d blocks", tried)
	}
}
