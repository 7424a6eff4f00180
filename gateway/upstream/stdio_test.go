package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/upstream"
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
		modeVar: mode, "PASSWORD": "hunter2-hunter2", "STARTS": filepath.Join(t.TempDir(), "starts"),
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
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		noneLeft(t, s)
		eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
	return session
}

// noneLeft checks that no process that was started still runs.
func noneLeft(t testing.TB, s upstream.Settings) {
	t.Helper()
	for _, pid := range starts(t, s) {
		eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return !running(pid) })
	}
}

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

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 300 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("it does not come about that %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
}

func call(t testing.TB, s *upstream.Session, name, args string) tool.Result {
	t.Helper()
	result, err := s.Call(t.Context(), name, json.RawMessage(args))
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

func TestListIsLossless(t *testing.T) {
	cfg := settings(t, "good")
	s := open(t, cfg, nil)
	if got := s.State(); got.Status != upstream.Idle || got.PID != 0 {
		t.Errorf("state before: %+v", got)
	}
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools()
	if !slices.IsSorted(names(tools)) || len(tools) != len(definitions) {
		t.Errorf("tools are %v", names(tools))
	}
	yes := true
	want := tool.Tool{
		ID: tool.ID{Upstream: "mem", Name: "echo"}, Wire: "echo", Title: "Echo", Description: "Echoes.",
		Input:       json.RawMessage(`{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"}}}`),
		Annotations: tool.Annotations{ReadOnly: &yes},
	}
	i := slices.Index(names(tools), "echo")
	if diff := cmp.Diff(want, tools[i]); diff != "" {
		t.Error(diff)
	}
	hello := tools[slices.Index(names(tools), "say_hello")]
	if hello.Wire != "say-hello" || string(hello.Output) != `{"type":"object","properties":{"z":{},"a":{}}}` {
		t.Errorf("say_hello is %+v", hello)
	}
	state := s.State()
	if state.Status != upstream.Ready || state.ServerName != "raw[31m" || state.ServerVersion != "1.2" || state.Protocol != "2025-11-25" {
		t.Errorf("state: %+v", state)
	}
	if state.PID != starts(t, cfg)[0] || state.Stderr != "raw server starts" {
		t.Errorf("state: %+v", state)
	}
}

func TestJunkOnStdoutIsSkipped(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	s := open(t, settings(t, "junk"), &upstream.Options{Logger: log})
	if got := call(t, s, "echo", `{"a":1}`); string(got.Structured) != `{"a":1}` {
		t.Errorf("result %s", got.Structured)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(logged.String(), "skip line"); n != 10 {
		t.Errorf("%d lines of junk in the log, want 10:\n%s", n, &logged)
	}
	if logged.Len() > 8000 || bytes.ContainsRune(logged.Bytes(), 0x1b) {
		t.Errorf("log is %d bytes long, or holds an escape", logged.Len())
	}
}

func TestResultsAreLossless(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	got := call(t, s, "odd", "")
	want := tool.Result{
		Structured: json.RawMessage(`{"n":9007199254740993,"z":1,"a":1.0}`),
		Content: []tool.Content{
			{Type: "text", Text: "plain"},
			{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram","depth":9007199254740993,"b":1,"a":2}`)},
			{Type: "image", Data: []byte("hello"), MIME: "image/png"},
			{Type: "image", MIME: "image/png", Raw: json.RawMessage(`{"type":"image","data":"!!!","mimeType":"image/png"}`)},
			{Type: "resource", URI: "file:///a", MIME: "text/plain", Text: "inside"},
			{Type: "resource", URI: "file:///b", Data: []byte{0, 1}},
			{Type: "resource_link", URI: "file:///c", Name: "c", Raw: json.RawMessage(`{"type":"resource_link","uri":"file:///c","name":"c"}`)},
			{Raw: json.RawMessage(`7`)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	big := call(t, s, "echo", `{"n": 9007199254740993, "tag": "<b>&"}`)
	if string(big.Structured) != `{"n":9007199254740993,"tag":"<b>&"}` {
		t.Errorf("arguments became %s", big.Structured)
	}
	if failed := call(t, s, "fail", "{}"); !failed.IsError || failed.Text() != "no such row" {
		t.Errorf("fail: %+v", failed)
	}
	if text := call(t, s, "big", "null").Text(); len(text) != 20<<20 {
		t.Errorf("big: %d bytes", len(text))
	}
}

func TestCallErrors(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	tests := []struct {
		name, args string
		kind       tool.Kind
		says       string
	}{
		{"eco", "{}", tool.NotFound, "did you mean echo?"},
		{"say-hello", "{}", tool.NotFound, "did you mean say_hello?"},
		{"echo", "[1]", tool.Invalid, "must be a JSON object, not [1]"},
		{"echo", `{"a":`, tool.Invalid, "must be a JSON object"},
		{"refuse", "{}", tool.Invalid, "mem.refuse: city[2J is required"},
		{"nonsense", "{}", tool.Upstream, "no JSON object"},
	}
	for _, test := range tests {
		_, err := s.Call(t.Context(), test.name, json.RawMessage(test.args))
		wantError(t, err, test.kind, test.says)
	}
}

func TestSilentOnDiscover(t *testing.T) {
	cfg := settings(t, "silent")
	s := open(t, cfg, &upstream.Options{ProbeTimeout: 100 * time.Millisecond})
	call(t, s, "echo", "{}")
	if n := len(starts(t, cfg)); n != 1 {
		t.Errorf("started %d times, want once", n)
	}
}

func TestStuckInDiscover(t *testing.T) {
	cfg := settings(t, "stuck")
	s := open(t, cfg, &upstream.Options{ProbeTimeout: 100 * time.Millisecond})
	call(t, s, "echo", "{}")
	if n := len(starts(t, cfg)); n != 2 {
		t.Errorf("started %d times, want twice", n)
	}
}

func TestSlowStartIsNoSilence(t *testing.T) {
	s := open(t, settings(t, "sdk,late"), &upstream.Options{ProbeTimeout: 100 * time.Millisecond})
	if got := call(t, s, "echo", `{"a":1}`); got.Text() != `{"a":1}` {
		t.Errorf("echo: %+v", got)
	}
	if got := s.State().Protocol; got != "2026-07-28" {
		t.Errorf("revision %s, want the newest", got)
	}
}

func TestCrashFailsPendingCallsAndRecovers(t *testing.T) {
	cfg := settings(t, "good")
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	var pending sync.WaitGroup
	for range 5 {
		pending.Go(func() {
			_, err := s.Call(t.Context(), "slow", nil)
			wantError(t, err, tool.Upstream, "exited with status 7", "fatal: lost [hidden]")
		})
	}
	eventually(t, "calls are sent", func() bool { return s.State().Status == upstream.Ready })
	time.Sleep(50 * time.Millisecond)
	begin := time.Now()
	_, err := s.Call(t.Context(), "crash", nil)
	pending.Wait()
	if took := time.Since(begin); took > time.Second {
		t.Errorf("pending calls failed after %v", took)
	}
	wantError(t, err, tool.Upstream, "mem.crash: upstream failed: exited with status 7", "may or may not have taken effect")
	eventually(t, "the loss is seen", func() bool { return s.State().Status == upstream.Failed })
	if state := s.State(); !strings.Contains(state.Error, "status 7") || state.PID != 0 || strings.Contains(state.Stderr, "hunter2") {
		t.Errorf("state: %+v", state)
	}
	if len(s.Tools()) != len(definitions) {
		t.Error("the tools are forgotten")
	}
	call(t, s, "echo", "{}") // at once, as it had worked before
	if n := len(starts(t, cfg)); n != 2 {
		t.Errorf("started %d times, want twice", n)
	}
}

func TestExitAtStartBacksOff(t *testing.T) {
	cfg := settings(t, "exit")
	s := open(t, cfg, nil)
	for range 20 { // one attempt, then the same answer without another
		wantError(t, s.Connect(t.Context()), tool.Upstream, "cannot connect to upstream mem", "exited with status 3", "Error: no database at [hidden]")
	}
	if n := len(starts(t, cfg)); n != 1 {
		t.Errorf("started %d times, want once", n)
	}
	_, err := s.Call(t.Context(), "echo", nil)
	wantError(t, err, tool.Upstream, "next attempt in 0.")
	time.Sleep(time.Until(s.State().RetryAt))
	wantError(t, s.Connect(t.Context()), tool.Upstream, "status 3")
	state := s.State()
	if n := len(starts(t, cfg)); n != 2 {
		t.Errorf("started %d times, want twice", n)
	}
	if wait := time.Until(state.RetryAt); wait < 300*time.Millisecond || wait > 600*time.Millisecond {
		t.Errorf("the second pause is %v, want about 400ms", wait)
	}
	if state.Status != upstream.Failed || !strings.Contains(state.Stderr, "[hidden]") {
		t.Errorf("state: %+v", state)
	}
}

func TestCannotStart(t *testing.T) {
	s := open(t, upstream.Settings{ID: "x", Command: "no-such-program-here"}, nil)
	wantError(t, s.Connect(t.Context()), tool.Upstream, `start "no-such-program-here": executable file not found`)
	s = open(t, upstream.Settings{ID: "x"}, nil)
	wantError(t, s.Connect(t.Context()), tool.Invalid, "either a command or a url")
	s = open(t, upstream.Settings{ID: "x", URL: "ftp://a"}, nil)
	wantError(t, s.Connect(t.Context()), tool.Invalid, "http://")
}

func TestConnectIsShared(t *testing.T) {
	cfg := settings(t, "good")
	var lists atomic.Int32
	s := open(t, cfg, &upstream.Options{OnTools: func([]tool.Tool) { lists.Add(1) }})
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if err := s.Connect(t.Context()); err != nil {
				t.Error(err)
			}
			if n := lists.Load(); n != 1 {
				t.Errorf("OnTools was called %d times before Connect returned, want once", n)
			}
		})
	}
	all.Wait()
	if n := len(starts(t, cfg)); n != 1 {
		t.Errorf("started %d times, want once", n)
	}
}

func TestAttemptOutlivesItsFirstCaller(t *testing.T) {
	s := open(t, settings(t, "sdk,late"), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantError(t, s.Connect(ctx), tool.Timeout, "waiting for upstream mem")
	if got := s.State().Status; got != upstream.Connecting {
		t.Errorf("status %s", got)
	}
	call(t, s, "echo", "{}")
}

func TestConnectTimeout(t *testing.T) {
	s := open(t, settings(t, "deaf"), &upstream.Options{ConnectTimeout: 300 * time.Millisecond})
	wantError(t, s.Connect(t.Context()), tool.Upstream, "no answer within 0.3s", "raw server starts")
}

func TestHostileLists(t *testing.T) {
	for mode, want := range map[string]int{"cursor": len(definitions), "endless": 0, "many": 10_000, "paged": len(definitions)} {
		t.Run(mode, func(t *testing.T) {
			s := open(t, settings(t, mode), nil)
			if err := s.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(s.Tools()); n != want {
				t.Errorf("%d tools, want %d", n, want)
			}
		})
	}
}

func TestStrangeDefinitions(t *testing.T) {
	var logged bytes.Buffer
	s := open(t, settings(t, "strange"), &upstream.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools()
	if len(tools) != len(definitions)+7 {
		t.Errorf("tools are %v", names(tools))
	}
	seen := map[tool.ID]bool{}
	for _, one := range tools {
		if seen[one.ID] || !json.Valid(one.Input) || one.Input[0] != '{' {
			t.Errorf("%s: taken or without a schema", one.ID)
		}
		seen[one.ID] = true
		if one.Wire == "wrong" && (one.Title != "" || one.Description != "" || one.Annotations.ReadOnly != nil || *one.Annotations.Destructive) {
			t.Errorf("wrong: %+v", one)
		}
		if one.Wire == "true-schema" && one.Output != nil {
			t.Errorf("output schema %s", one.Output)
		}
	}
	if n := strings.Count(logged.String(), "skip tool"); n != 6 || !strings.Contains(logged.String(), "tool=echo") {
		t.Errorf("%d tools skipped in the log, want 6, by name:\n%s", n, &logged)
	}
}

func TestListChanged(t *testing.T) {
	lists := make(chan int, 100)
	s := open(t, settings(t, "good"), &upstream.Options{OnTools: func(tools []tool.Tool) { lists <- len(tools) }})
	call(t, s, "touch", "{}")
	call(t, s, "grow", "{}")
	want := []int{len(definitions), len(definitions) + 1}
	for _, n := range want {
		select {
		case got := <-lists:
			if got != n {
				t.Errorf("%d tools, want %d", got, n)
			}
		case <-time.After(3 * time.Second):
			t.Fatalf("no list of %d tools", n)
		}
	}
	call(t, s, "extra0", "{}")
}

func TestTimeoutAndCancelReachTheUpstream(t *testing.T) {
	cfg := settings(t, "good")
	cfg.Timeout = 150 * time.Millisecond
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	_, err := s.Call(t.Context(), "slow", nil)
	wantError(t, err, tool.Timeout, "mem.slow gave no answer within 0.15")

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = s.Call(ctx, "slow", nil)
	wantError(t, err, tool.Canceled)

	eventually(t, "both calls are cancelled", func() bool {
		return string(call(t, s, "cancelled", "{}").Structured) == `{"n":2}`
	})
}

func TestMessageOfMoreThan64MiB(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	call(t, s, "echo", "{}")
	_, err := s.Call(t.Context(), "flood", nil)
	wantError(t, err, tool.Upstream, "message of more than 64 MiB")
	call(t, s, "echo", "{}")
}

func TestStubbornProcessGroup(t *testing.T) {
	cfg := settings(t, "stubborn")
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	eventually(t, "the grandchild runs", func() bool { return len(starts(t, cfg)) == 2 })
	if err := s.Close(); err != nil { // open checks the time and the processes
		t.Fatal(err)
	}
	_, err := s.Call(t.Context(), "echo", nil)
	wantError(t, err, tool.Upstream, "closed")
	if got := s.State().Status; got != upstream.Closed {
		t.Errorf("status %s", got)
	}
}

func TestCloseInterrupts(t *testing.T) {
	for _, mode := range []string{"deaf", "good"} {
		s := open(t, settings(t, mode), nil)
		failed := make(chan error)
		go func() {
			_, err := s.Call(t.Context(), "slow", nil)
			failed <- err
		}()
		time.Sleep(150 * time.Millisecond)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _ = s.Close() })
		}
		wantError(t, <-failed, tool.Upstream, "closed")
		all.Wait()
	}
}

func TestEnvironmentIsAllowed(t *testing.T) {
	t.Setenv("GATEWAY_TOKEN", "secret")
	t.Setenv("XDG_TEST", "kept")
	t.Setenv("TZ", "UTC")
	s := open(t, settings(t, "good"), nil)
	var env []string
	if err := json.Unmarshal(call(t, s, "env", "{}").Structured, &env); err != nil {
		t.Fatal(err)
	}
	allowed := []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SHELL", "TERM", "PASSWORD", "STARTS", modeVar}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "XDG_") {
			t.Errorf("the upstream sees %s", name)
		}
	}
	if !slices.Contains(env, "XDG_TEST=kept") || !slices.Contains(env, "TZ=UTC") || !slices.Contains(env, "PASSWORD=hunter2-hunter2") {
		t.Errorf("environment is %q", env)
	}
}

// beGateway holds a session until it is killed.
func beGateway() {
	self, _ := os.Executable()
	s := upstream.New(upstream.Settings{ID: "x", Command: self, Env: map[string]string{
		modeVar: "stubborn,grandchild", "STARTS": os.Getenv("STARTS"),
	}}, nil)
	if err := s.Connect(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("connected")
	time.Sleep(time.Hour)
}

func TestGatewayKilled(t *testing.T) {
	cfg := settings(t, "gateway")
	gateway := exec.CommandContext(t.Context(), cfg.Command)
	gateway.Env = append(os.Environ(), modeVar+"=gateway", "STARTS="+cfg.Env["STARTS"])
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gateway.Wait()
	if n := len(starts(t, cfg)); n != 1 {
		t.Fatalf("started %d upstreams, want one", n)
	}
	noneLeft(t, cfg)
}
