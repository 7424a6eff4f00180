package replay

import (
	"regexp"
	"strings"
	"testing"

	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestDocs checks that docs/how-to/resume.md shows the error for a program that does not make the calls in its journal.
func TestDocs(t *testing.T) {
	call := pastCall("create", "1f0c2a9b", nil)
	call.Tool = tool.ID{Upstream: "crm", Name: "create"}
	r, _ := newReplayer(&journal.Contents{Header: journal.Header{ID: "e-2f6qdmnhx3k4c"}, Calls: []journal.Call{call}}, history.End{}, true, nil)
	r.answered = 1
	err := tool.AsError(r.diverge(&toolcall.Attempt{Tool: tool.ID{Upstream: "crm", Name: "update"}, Arguments: "77ab01ce"}))
	if err == nil {
		t.Fatal("no error")
	}
	shown := regexp.MustCompile(`(?m)^ *call .* differs from .*$`)
	for _, e := range testutil.Examples(t, "docs/how-to/resume.md") {
		if line := shown.FindString(e.Text); line != "" {
			if strings.TrimSpace(line) != err.Message {
				t.Errorf("it is not %s", err.Message)
			}
			return
		}
	}
	t.Error("the page does not show it")
}
