package topcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/testutil/ptytest"
	"sallyport/internal/tool"
)

// sampleView is what a gateway says that has much to tell, some of it hostile.
func sampleView(now time.Time) topView {
	v := topView{At: now, Approvals: 2, Silent: 1, Today: history.SavingsStep{Executions: 1412, Failed: 3, Calls: 20417, Answered: 34_000, Read: 1_234_567},
		Gateways: []topGateway{{Version: "v1.2", Status: "ok", UptimeMS: 3 * 3600_000}, {Version: "dev\x1b]0;evil\a", UptimeMS: 9000}}}
	for i, state := range []string{"running", "waiting", "queued"} {
		v.Executions = append(v.Executions, httpapi.LiveExecution{ID: fmt.Sprintf("e-%d", i+1), State: state, Language: "python", Started: now.Add(-time.Duration(40*i+2) * time.Second), Made: i, Bytes: int64(i) * 70_000,
			Principal: []string{"token:ann", "日本語の名前", "\x1b[2Je\u0301vil\u202e"}[i]})
	}
	v.Executions[1].Calls = []httpapi.LiveCall{{Tool: tool.ID{Upstream: "github", Name: "search_issues"}, Begun: now.Add(-3 * time.Second)}}
	v.Ended = []httpapi.ExecutionSummary{{ID: "e-0", Language: "typescript", Status: "timeout", Started: time.Now().Add(-90 * time.Second), DurationMS: 30_000, Calls: 7}}
	for i := range 9 {
		v.Upstreams = append(v.Upstreams, topUpstream{ID: fmt.Sprintf("up%d", i), Status: "ready", Tools: i})
	}
	v.Upstreams[7].Status, v.Upstreams[7].Reason = "failed", "it says:\n\x1b[31mno\r such host"
	v.Upstreams[5].Held = 2
	v.sort()
	return v
}

// TestTopFrame: a picture as it is, and that nothing in it is larger than the paper or speaks to the terminal.
func TestTopFrame(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.Local)
	s := &screen{selected: "e-2"}
	lines := s.frame(sampleView(now), viewport{width: 110, height: 22})
	golden.Check(t, "testdata/golden/top.txt", strings.Join(lines, "\n")+"\n")
	ours := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	for width := range 130 {
		for height := range 26 {
			lines := s.frame(sampleView(now), viewport{width: width, height: height, colours: true})
			if len(lines) > max(0, height-1) {
				t.Fatalf("%d lines on paper of %d", len(lines), height)
			}
			for _, line := range lines {
				seen := ours.ReplaceAllString(line, "")
				if displayWidth(seen) > width || strings.ContainsAny(seen, "\x1b\a\r\n\u202e") {
					t.Fatalf("on paper of %dx%d: %q", width, height, line)
				}
			}
		}
	}
}

// stubGateway is a gateway's API as far as top asks for it.
type stubGateway struct {
	mu       sync.Mutex
	live     []httpapi.LiveExecution
	canceled []string
}

func (g *stubGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answers := map[string]any{"/health": httpapi.Health{Status: "ok", Version: "v9"}, "/executions/live": httpapi.LiveList{Executions: g.live}, "/approvals": httpapi.ApprovalList{}, "/executions": httpapi.ExecutionList{}, "/savings": httpapi.SavingsReport{}}
	answer, known := answers[r.URL.Path]
	if id, found := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/executions/"), "/cancel"); found && r.Method == http.MethodPost {
		g.canceled, g.live = append(g.canceled, id), g.live[:0]
		answer, known = httpapi.Canceling{ID: id}, true
	}
	if !known {
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestTop: a person at a terminal sees what runs, cancels the program that was chosen after a question, sees that the
// gateway goes, and has the terminal back as it was.
func TestTop(t *testing.T) {
	data := testutil.ShortDir(t)
	person, terminal := ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 20, Col: 90}); err != nil {
		t.Fatal(err)
	}
	before := ptytest.Flags(t, terminal)
	env := func(name string) (string, bool) { return map[string]string{"NO_COLOR": "1"}[name], name == "NO_COLOR" }
	a := &app{App: &cli.App{Env: env, Stdin: terminal, Stdout: terminal, Stderr: io.Discard, DataPath: data}}
	g := &stubGateway{live: []httpapi.LiveExecution{{ID: "e-1", State: "running", Started: time.Now(), Principal: "ann\x1b]0;x\a"}, {ID: "e-2", State: "queued", Started: time.Now()}}}
	closeControl := a.OpenControl(slog.New(slog.DiscardHandler), g)
	ended := make(chan error, 1)
	go func() { ended <- a.top(t.Context(), 200*time.Millisecond) }()
	press := func(keys string) {
		t.Helper()
		if _, err := person.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	shown := ptytest.ReadUntil(t, person, "e-2")
	if !strings.HasPrefix(shown, enterScreen) || strings.Contains(shown, "\a") || strings.Contains(shown, "\x1b[3") {
		t.Errorf("shows %q", shown)
	}
	press("c")
	ptytest.ReadUntil(t, person, "choose a program")
	press("\x1b[B\x1b[B\x1b[5~c") // down, down, page up, which means nothing
	ptytest.ReadUntil(t, person, "cancel e-2? y")
	press("q") // an answer, and not the end
	ptytest.ReadUntil(t, person, "nothing was canceled")
	press("\x1b[Acy")
	ptytest.ReadUntil(t, person, "canceled e-1")
	if g.mu.Lock(); len(g.canceled) != 1 || g.canceled[0] != "e-1" {
		t.Errorf("canceled %v", g.canceled)
	}
	g.mu.Unlock()
	closeControl()
	ptytest.ReadUntil(t, person, "the gateway has ended")
	press("q")
	if got := ptytest.ReadUntil(t, person, leaveScreen); !strings.HasSuffix(got, leaveScreen) {
		t.Errorf("ends with %q", got)
	}
	if err := <-ended; err != nil || ptytest.Flags(t, terminal) != before {
		t.Errorf("%v, flags %#x before and %#x after", err, before, ptytest.Flags(t, terminal))
	}
}

// TestTopIsCalledOff: a signal gives the terminal back too.
func TestTopIsCalledOff(t *testing.T) {
	person, terminal := ptytest.Open(t)
	before := ptytest.Flags(t, terminal)
	a := &app{App: &cli.App{Env: os.LookupEnv, Stdin: terminal, Stdout: terminal, Stderr: io.Discard, DataPath: testutil.ShortDir(t)}}
	t.Setenv("TERM", "xterm")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.top(ctx, time.Hour) }()
	ptytest.ReadUntil(t, person, "no gateway runs on")
	cancel()
	ptytest.ReadUntil(t, person, leaveScreen)
	if err := <-ended; cli.ExitStatus(err) != cli.ExitInterrupted || ptytest.Flags(t, terminal) != before {
		t.Errorf("%v, flags %#x before and %#x after", err, before, ptytest.Flags(t, terminal))
	}
}

// TestTopOnce: without a terminal there is one picture, and without a gateway an error.
func TestTopOnce(t *testing.T) {
	var out strings.Builder
	a := &app{App: &cli.App{Env: os.LookupEnv, Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, DataPath: testutil.ShortDir(t)}}
	if err := a.top(t.Context(), time.Second); err == nil || !strings.Contains(err.Error(), "no gateway runs") || out.String() != "" {
		t.Errorf("%v, and printed %q", err, out.String())
	}
	defer a.OpenControl(slog.New(slog.DiscardHandler), &stubGateway{live: []httpapi.LiveExecution{{ID: "e-1\x1b[2J", State: "running", Started: time.Now()}}})()
	if err := errors.Join(a.top(t.Context(), time.Second), a.topOnce(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	picture, object, _ := strings.Cut(out.String(), "\n{")
	if !strings.Contains(picture, "e-1") || strings.Contains(out.String(), "\x1b") || !json.Valid([]byte("{"+object)) {
		t.Errorf("printed %q", out.String())
	}
}
