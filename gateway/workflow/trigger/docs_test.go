package trigger_test

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/workflow/trigger"
	"sallyport/internal/testutil"
)

// TestDocsRequest runs the shell example for webhooks of docs/how-to/workflows.md, and checks that its signature is accepted.
func TestDocsRequest(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl")
	}
	for _, e := range testutil.Examples(t, "docs/how-to/workflows.md") {
		if e.Section != "Webhooks" || e.Language != "sh" {
			continue
		}
		cmd := exec.Command("sh", "-ec", `curl() { printf '%s\n' "$@"; }`+"\n"+e.Text)
		cmd.Env = append(cmd.Environ(), "SECRET=of the example")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Split(strings.TrimSpace(string(out)), "\n")
		header, body := http.Header{}, ""
		for pair := range slices.Chunk(args[:len(args)-1], 2) {
			if pair[0] == "-d" {
				body = pair[1]
				continue
			}
			name, value, _ := strings.Cut(pair[1], ": ")
			header.Set(name, value)
		}
		id, err := trigger.Verify("standard", "of the example", header, []byte(body), time.Now())
		if err != nil || id != "test-1" || !strings.HasSuffix(args[len(args)-1], "/hooks/build") {
			t.Errorf("%q %v: %q", id, err, args)
		}
		return
	}
	t.Error("the page has no such example")
}
