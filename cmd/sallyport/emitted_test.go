package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil"
)

// TestEmittedOverTheWire: what programs in both languages emit reaches clients of
// both eras of the built binary, over stdio and HTTP, byte for byte.
func TestEmittedOverTheWire(t *testing.T) {
	runsc, dir := testutil.Runsc(t), testutil.ShortDir(t)
	binary, config := testutil.Binary(t), filepath.Join(t.TempDir(), "upstreams.yaml")
	text := fmt.Sprintf("upstreams: {}\nsandbox: {runsc: %q}\nhttp: {tokens: {test: a-token-for-a-test}}\n", runsc)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	testutil.ShareSnapshots(dir)
	serve := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, append([]string{"serve", "--config", config}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+t.TempDir(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd
	}
	web := serve("--http", "127.0.0.1:0")
	url, _ := startListening(t, web)
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		wantEmitted(t, "HTTP "+version, dialHTTP(t, url, version))
		pipe := serve()
		pipe.Stderr = t.Output()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(),
			&mcp.CommandTransport{Command: pipe, TerminateDuration: 10 * time.Second}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		wantEmitted(t, "stdio "+version, session)
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := web.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := web.Wait(); err != nil {
		t.Errorf("serve --http ended with %v", err)
	}
}

// emitters emit a megabyte of every byte, which is called a picture, and a table.
var emitters = map[string]string{
	"python":     "from sallyport import emit\nemit(bytes(range(256)) * 4096, name='plot.png', mime='image/png')\nemit([{'city': 'Oslo', 'n': 1}])\n'sent'",
	"typescript": "import { emit } from 'sallyport';\nawait emit(Uint8Array.from({ length: 1 << 20 }, (_, i) => i % 256), { name: 'plot.png', mime: 'image/png' });\nawait emit([{ city: 'Oslo', n: 1 }]);\n'sent'",
}

func wantEmitted(t *testing.T, who string, session *mcp.ClientSession) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pattern := make([]byte, 256)
	for i := range pattern {
		pattern[i] = byte(i)
	}
	for language, code := range emitters {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": code, "language": language}})
		if err != nil || result.IsError || len(result.Content) != 3 {
			t.Errorf("%s %s: %v, %+v", who, language, err, result)
			continue
		}
		said, _ := result.Content[0].(*mcp.TextContent)
		if said == nil || !strings.HasPrefix(said.Text, "sent\n(emitted: plot.png, 1.0 MB image/png; ") || len(said.Text) > 120 {
			t.Errorf("%s %s: text %+v", who, language, said)
		}
		plot, _ := result.Content[1].(*mcp.ImageContent)
		if plot == nil || plot.MIMEType != "image/png" || !bytes.Equal(plot.Data, bytes.Repeat(pattern, 4096)) {
			t.Errorf("%s %s: the picture is another", who, language)
		}
		table, _ := result.Content[2].(*mcp.TextContent)
		if table == nil || !strings.Contains(table.Text, "| Oslo |") || table.Annotations == nil || table.Annotations.Audience[0] != "user" {
			t.Errorf("%s %s: table %+v", who, language, table)
		}
	}
}
