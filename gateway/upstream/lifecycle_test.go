package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

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
			_, err := callContext(t.Context(), s, "slow", "")
			wantError(t, err, tool.Upstream, "exited with status 7", "fatal: lost [hidden]")
		})
	}
	testutil.Eventually(t, "calls are sent", soon, func() bool { return s.State().Status == upstream.Ready })
	time.Sleep(50 * time.Millisecond)
	begin := time.Now()
	_, err := callContext(t.Context(), s, "crash", "")
	pending.Wait()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("pending calls failed after %v", took)
	}
	wantError(t, err, tool.Upstream, "mem.crash: upstream failed: exited with status 7", "may or may not have taken effect")
	testutil.Eventually(t, "the loss is seen", soon, func() bool { return s.State().Status == upstream.Failed })
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
	_, err := callContext(t.Context(), s, "echo", "")
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
	for reason, set := range map[string]upstream.Settings{"either a command or a url": {ID: "x"}, "http://": {ID: "x", URL: "ftp://a"}} {
		s = open(t, set, nil)
		for range 2 { // the second time within the backoff
			if e := wantError(t, s.Connect(t.Context()), tool.Upstream, reason); e.Retryable {
				t.Errorf("a retry would help: %+v", e)
			}
		}
	}
}

func TestConnectIsShared(t *testing.T) {
	cfg := settings(t, "good")
	var lists atomic.Int32
	s := open(t, cfg, &upstream.Options{OnOffer: func(tool.Offer) { lists.Add(1) }})
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if err := s.Connect(t.Context()); err != nil {
				t.Error(err)
			}
			if n := lists.Load(); n != 1 {
				t.Errorf("OnOffer was called %d times before Connect returned, want once", n)
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
	s := open(t, settings(t, "deaf"), &upstream.Options{ConnectTimeout: 3 * time.Second})
	wantError(t, s.Connect(t.Context()), tool.Upstream, "no answer within 3s", "raw server starts")
}

func TestTimeoutAndCancelReachTheUpstream(t *testing.T) {
	cfg := settings(t, "good")
	cfg.Timeout = 150 * time.Millisecond
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	_, err := callContext(t.Context(), s, "slow", "")
	wantError(t, err, tool.Timeout, "mem.slow gave no answer within 0.")

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = callContext(ctx, s, "slow", "")
	wantError(t, err, tool.Canceled)

	testutil.Eventually(t, "both calls are cancelled", soon, func() bool {
		return string(call(t, s, "cancelled", "{}").Structured) == `{"n":2}`
	})
}

func TestMessageOfMoreThan64MiB(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	call(t, s, "echo", "{}")
	_, err := callContext(t.Context(), s, "flood", "")
	wantError(t, err, tool.Upstream, "message of more than 64 MiB")
	call(t, s, "echo", "{}")
}

// An answer that is too long, but ends, fails its own call only.
func TestLongAnswerFailsItsCall(t *testing.T) {
	t.Parallel()
	cfg := settings(t, "good")
	cfg.MaxMessage = 1 << 20
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	process := s.State().PID
	for range 2 {
		_, err := callContext(t.Context(), s, "big", "{}")
		wantError(t, err, tool.Upstream, "message of more than 1 MiB")
	}
	if now := s.State().PID; now != process {
		t.Error("the upstream was started again")
	}
}

func TestStubbornProcessGroup(t *testing.T) {
	cfg := settings(t, "stubborn")
	s := open(t, cfg, nil)
	call(t, s, "echo", "{}")
	testutil.Eventually(t, "the grandchild runs", soon, func() bool { return len(starts(t, cfg)) == 2 })
	if err := s.Close(); err != nil { // open checks the time and the processes
		t.Fatal(err)
	}
	_, err := callContext(t.Context(), s, "echo", "")
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
			_, err := callContext(t.Context(), s, "slow", "")
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
	t.Setenv("NODE_EXTRA_CA_CERTS", "/etc/company.pem")
	s := open(t, settings(t, "good"), nil)
	var env []string
	if err := json.Unmarshal(call(t, s, "env", "{}").Structured, &env); err != nil {
		t.Fatal(err)
	}
	allowed := []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SHELL", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PASSWORD", "STARTS", "GORACE", modeVar}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "XDG_") {
			t.Errorf("the upstream sees %s", name)
		}
	}
	if !slices.Contains(env, "XDG_TEST=kept") || !slices.Contains(env, "TZ=UTC") || !slices.Contains(env, "NODE_EXTRA_CA_CERTS=/etc/company.pem") || !slices.Contains(env, "SSL_CERT_FILE="+os.Getenv("SSL_CERT_FILE")) || !slices.Contains(env, "PASSWORD=[hidden]") {
		t.Errorf("environment is %q", env)
	}
}

// beGateway holds a session until it is killed.
func beGateway() {
	self, _ := os.Executable()
	s := upstream.New(upstream.Settings{ID: "x", Command: self, Env: map[string]string{
		modeVar: "stubborn", "STARTS": os.Getenv("STARTS"),
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
	testutil.Eventually(t, "the grandchild runs", soon, func() bool { return len(starts(t, cfg)) == 2 })
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gateway.Wait()
	noneLeft(t, cfg)
}

// Whoever connects while OnOffer is being told waits for it, too.
func TestConnectWaitsForOnOffer(t *testing.T) {
	told, release, second := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := open(t, settings(t, "good"), &upstream.Options{OnOffer: func(tool.Offer) { close(told); <-release }})
	first := make(chan error, 1)
	go func() { first <- s.Connect(context.Background()) }()
	<-told
	go func() { second <- s.Connect(context.Background()) }()
	select {
	case err := <-second:
		t.Errorf("Connect returned %v before OnOffer had", err)
		second <- err
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}
