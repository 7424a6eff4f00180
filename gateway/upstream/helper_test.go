package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// settings make the test binary the upstream.
func settings(t testing.TB, mode string) upstream.Settings {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Settings{ID: "mem", Command: self, Env: map[string]string{
		"GORACE": "atexit_sleep_ms=0", // otherwise it takes a second to exit
		modeVar:  mode, "PASSWORD": "hunter2-hunter2", "STARTS": filepath.Join(t.TempDir(), "starts"),
	}}
}

// open returns a session that leaves nothing behind: no process, no goroutine.
func open(t testing.TB, s upstream.Settings, opts *upstream.Options) *upstream.Session {
	t.Helper()
	before := runtime.NumGoroutine()
	session := upstream.New(s, opts)
	t.Cleanup(func() {
		begin := time.Now()
		if err := session.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("Close took %v", took)
		}
		noneLeft(t, s)
		testutil.Eventually(t, "goroutines end", soon, func() bool { return runtime.NumGoroutine() <= before })
	})
	return session
}

// noneLeft checks that no process that was started still runs.
func noneLeft(t testing.TB, s upstream.Settings) {
	t.Helper()
	for _, pid := range starts(t, s) {
		testutil.Eventually(t, fmt.Sprintf("process %d ends", pid), soon, func() bool { return !running(pid) })
	}
}

// soon is how long a change may take to be noticed, on a busy machine.
const soon = 30 * time.Second

func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat, []byte(") ")) // a zombie runs no more
	return !bytes.HasPrefix(after, []byte("Z"))
}

func starts(t testing.TB, s upstream.Settings) (pids []int) {
	t.Helper()
	data, _ := os.ReadFile(s.Env["STARTS"])
	for line := range strings.Lines(string(data)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func call(t testing.TB, s *upstream.Session, name, args string) tool.Result {
	t.Helper()
	result, err := callContext(t.Context(), s, name, args)
	if err != nil {
		t.Fatalf("call %s: %v", name, err)
	}
	return result
}

func wantError(t testing.TB, err error, kind tool.Kind, parts ...string) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("error is %T %v, want a *tool.Error", err, err)
	}
	if e.Kind != kind {
		t.Errorf("kind %q, want %q: %v", e.Kind, kind, e)
	}
	for _, part := range parts {
		if !strings.Contains(e.Error(), part) {
			t.Errorf("error %q does not say %q", e, part)
		}
	}
	if strings.Contains(e.Error(), "hunter2") || strings.ContainsRune(e.Error(), 0x1b) {
		t.Errorf("error %q shows a secret or an escape", e)
	}
	return e
}

func names(tools []tool.Tool) (list []string) {
	for _, t := range tools {
		list = append(list, t.ID.Name)
	}
	return list
}

// callContext is Session.Call of a tool by its name.
func callContext(ctx context.Context, s *upstream.Session, name, args string) (tool.Result, error) {
	return s.Call(ctx, tool.Call{Tool: tool.ID{Name: name}, Args: json.RawMessage(args)})
}
