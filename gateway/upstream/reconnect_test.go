package upstream_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
)

// TestFailureStaysKnown checks that the state of an upstream has its last failure while the next attempt runs.
func TestFailureStaysKnown(t *testing.T) {
	script := `test -e "$0" && exec sleep 60; : >"$0"; echo 'Error: no token' >&2; exit 7`
	s := open(t, upstream.Settings{ID: "mem", Command: "sh", Args: []string{"-c", script, filepath.Join(t.TempDir(), "seen")}}, nil)
	if err := s.Connect(t.Context()); err == nil {
		t.Fatal("it connects")
	}
	for end := time.Now().Add(30 * time.Second); s.State().Status != upstream.Connecting; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no further attempt: %+v", s.State())
		}
		go func() { _ = s.Connect(t.Context()) }()
	}
	if why := s.State().Error; !strings.Contains(why, "exited with status 7; stderr: Error: no token") {
		t.Errorf("the state while connecting again: %q", why)
	}
}
