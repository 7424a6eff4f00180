package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// file returns a file of the default workspace.
func (s *flowsSite) file(t *testing.T, path string) (status int, text string) {
	t.Helper()
	return s.askFile(t, http.MethodGet, path, "")
}

// askFile asks again while the servers elect a leader.
func (s *flowsSite) askFile(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	testutil.Eventually(t, "the store answers", workersPatience, func() bool {
		var answer []byte
		status, answer = s.ask(t, method, "/api/workspaces/default/files/"+path, body, "Authorization: Bearer "+flowsToken)
		text = string(answer)
		return status != http.StatusServiceUnavailable
	})
	return status, text
}

func (s *flowsSite) writeFile(t *testing.T, path, text string) {
	t.Helper()
	if status, answer := s.askFile(t, http.MethodPut, path, text); status/100 != 2 {
		t.Fatalf("write %s: %d %s", path, status, answer)
	}
}

func (s *flowsSite) wantFile(t *testing.T, path, want string) {
	t.Helper()
	if status, text := s.file(t, path); status != http.StatusOK || text != want {
		t.Errorf("%s: %d %.200q, want %q", path, status, text, want)
	}
}

// kill kills the gateway of the site.
func (s *flowsSite) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // killed
}

// TestSharedFiles: files that were written at a gateway that is killed, with its machine, are at the other one.
func TestSharedFiles(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 3)
	one, two := newSharedSite(t, c, c.Creds), newSharedSite(t, c, c.Creds)
	one.serve(t)
	two.serve(t)
	one.writeFile(t, "dir/kept.txt", "kept")
	one.writeFile(t, "changed.txt", "1")
	two.wantFile(t, "dir/kept.txt", "kept")
	two.writeFile(t, "changed.txt", "2")
	one.wantFile(t, "changed.txt", "2")
	one.writeFile(t, "last.txt", "acknowledged")
	one.kill(t)
	if err := os.RemoveAll(filepath.Join(one.dir, "sallyport")); err != nil {
		t.Fatal(err)
	}
	two.wantFile(t, "last.txt", "acknowledged")
	one.serve(t)
	one.wantFile(t, "last.txt", "acknowledged")
}
