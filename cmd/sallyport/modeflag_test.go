package main_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/testutil"
)

// TestModeFlagExcludesCode: with --mode direct no URL gives a client execute_code.
func TestModeFlagExcludesCode(t *testing.T) {
	t.Parallel()
	dir, config := testutil.ShortDir(t), filepath.Join(t.TempDir(), "upstreams.yaml")
	if err := os.WriteFile(config, []byte("upstreams: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]struct {
		status int
		text   string
	}{
		"direct": {http.StatusBadRequest, "mode code is not served here"},
		"code":   {http.StatusOK, "serverInfo"},
	} {
		cmd := exec.Command(testutil.Binary(t), "serve", "--config", config, "--http", "127.0.0.1:0", "--mode", mode)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+t.TempDir(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		url, _ := startListening(t, cmd)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"?mode=code", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || !strings.Contains(string(body), want.text) {
			t.Errorf("--mode %s: %d %s %v, want %d with %q", mode, resp.StatusCode, body, err, want.status, want.text)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("--mode %s: %v", mode, err)
		}
	}
}
