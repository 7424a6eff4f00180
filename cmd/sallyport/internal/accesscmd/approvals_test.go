package accesscmd

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/approvals"
	"sallyport/gateway/catalog"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/approval"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/ptytest"
	"sallyport/internal/tool"
)

// stubApprovals is a gateway in memory where calls wait.
type stubApprovals struct {
	httpapi.Service // methods that the test does not call

	mu      sync.Mutex
	list    []approvals.Approval
	answers []string
}

func (w *stubApprovals) Upstreams() []catalog.Upstream { return nil }
func (w *stubApprovals) Records(context.Context) iter.Seq2[history.Record, error] {
	return func(func(history.Record, error) bool) {}
}

func (w *stubApprovals) Approvals(context.Context) ([]approvals.Approval, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]approvals.Approval(nil), w.list...), nil
}

func (w *stubApprovals) Answer(ctx context.Context, id string, a approvals.Answer) (approvals.Approval, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, strings.Join([]string{id, map[bool]string{true: "allow", false: "deny"}[a.Allow], string(a.Scope), a.By, tool.Operator(ctx)}, " "))
	for i := range w.list {
		if w.list[i].ID == id {
			w.list[i].State = approval.Allowed
			return w.list[i], nil
		}
	}
	return approvals.Approval{}, &tool.Error{Kind: tool.NotFound, Message: "there is no approval " + id}
}

func (w *stubApprovals) add(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, approvals.Approval{ID: id, State: approval.Waiting, Asked: time.Now(),
		Request: approval.Request{Principal: "token:ann", Tool: "crm.delete\x1b[2J", Arguments: "id: 7\nname: [NAME_1]\x1b[31m", Reason: "deletions are looked at"}})
}

func (w *stubApprovals) answerLog() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.answers, "; ")
}

// TestWatch: what waits is shown when it comes, one key answers it, and a key of before does not.
func TestWatch(t *testing.T) {
	data := testutil.ShortDir(t)
	person, terminal := ptytest.Open(t)
	before := ptytest.Flags(t, terminal)
	a := &app{App: &cli.App{Env: os.LookupEnv, Stdin: terminal, Stdout: terminal, Stderr: io.Discard, DataPath: data}}
	room := &stubApprovals{}
	defer a.OpenControl(slog.New(slog.DiscardHandler), httpapi.New(room, nil))()
	room.add("a-1")
	ended := make(chan error, 1)
	go func() { ended <- a.watchApprovals(t.Context()) }()
	shown := ptytest.ReadUntil(t, person, "space later")
	if strings.Contains(shown, "\x1b") || !strings.Contains(shown, "| name: [NAME_1]") || !strings.Contains(shown, "deletions are looked at") {
		t.Errorf("shows %q", shown)
	}
	press := func(keys string) {
		t.Helper()
		if _, err := person.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	if said := room.answerLog(); said != "" {
		t.Errorf("answered unasked: %s", said)
	}
	testutil.Eventually(t, "a key counts", 10*time.Second, func() bool { // those of its first 50 ms do not
		press("y")
		return room.answerLog() != ""
	})
	press("yyyyy") // nothing is pending
	room.add("a-2")
	ptytest.ReadUntil(t, person, "space later")
	testutil.Eventually(t, "the second is answered", 10*time.Second, func() bool {
		press("xn")
		return strings.Contains(room.answerLog(), "a-2")
	})
	if got, want := room.answerLog(), "a-1 allow once cli cli; a-2 deny  cli cli"; got != want {
		t.Errorf("answers %q, want %q", got, want)
	}
	testutil.Eventually(t, "q ends it", 10*time.Second, func() bool {
		press("q")
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return true
		default:
			return false
		}
	})
	if after := ptytest.Flags(t, terminal); after != before {
		t.Errorf("the terminal's flags were %#x and are %#x", before, after)
	}
}
