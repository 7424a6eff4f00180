package execution

import (
	"strings"
	"testing"

	"sallyport/internal/approval"
	"sallyport/internal/testutil"
)

// TestDocs checks that the result of a held program has the lines that docs/how-to/approvals.md shows.
func TestDocs(t *testing.T) {
	held := Result{ID: "e-2f6qdmnhx3k4c", Approvals: []approval.Approval{{ID: "a-k3vq7m2yhx4dnw5rtu6zbc"}}}
	held.Status = Held
	held.Approvals[0].Tool, held.Approvals[0].Rule = "crm.delete_contact", "default"
	shown := 0
	for _, e := range testutil.Examples(t, "docs/how-to/approvals.md") {
		if e.Language == "text" {
			shown++
			if !strings.Contains(held.Text(), "\n"+e.Text) {
				t.Errorf("it is not\n%s", held.Text())
			}
		}
	}
	if shown == 0 {
		t.Error("the page shows nothing")
	}
}
