package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// ended is the end of a program in its journal.
func ended(id, principal, status string) string {
	return fmt.Sprintf(`{"record":{"id":%q,"principal":%q,"status":%q,"made":1}}`, id, principal, status)
}

func (s *sharing) wantLast(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	if got, err := s.LastFailed(ctx, ""); err != nil || got != want {
		t.Errorf("the last of %q in %q is %q, want %q: %v", tool.Principal(ctx), tool.Session(ctx), got, want, err)
	}
}

// TestLastElsewhere has two gateways: one finds the last programs that the other, or one that was lost, has run.
func TestLastElsewhere(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	_, one, two := startTwo(t)
	ada := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "s-1")
	two.wantLast(ada, t, "")
	one.write(t, journal.Header{ID: "e-failed", Principal: "ada", Session: "s-1", Gateway: one.Copies.Gateway()}, ended("e-failed", "ada", "failed"))
	two.wantLast(ada, t, "e-failed")
	for id, h := range map[string]journal.Header{
		"e-later":    {Session: "s-2"},
		"e-endpoint": {Session: "s-1"},
		"e-of-run":   {Session: "s-1", Root: "r-1"},
	} {
		h.ID, h.Principal, h.Gateway = id, "ada", one.Copies.Gateway()
		if id == "e-endpoint" {
			h.Program = []byte(`{"code":"x","endpoint":"desk"}`)
		}
		one.write(t, h, ended(id, "ada", "failed"))
	}
	one.write(t, journal.Header{ID: "e-bob", Principal: "bob", Session: "s-1", Gateway: one.Copies.Gateway()}, ended("e-bob", "bob", "failed"))
	two.wantLast(ada, t, "e-failed")
	two.wantLast(tool.WithSession(ada, "s-3"), t, "e-later")
	two.wantLast(tool.WithEndpoint(ada, "desk"), t, "e-endpoint")
	two.wantLast(tool.WithPrincipal(t.Context(), "bob"), t, "e-bob")
	for _, other := range []string{"", "eve", "ADA", "../ada"} {
		two.wantLast(tool.WithSession(tool.WithPrincipal(t.Context(), other), "s-1"), t, "")
	}
	one.write(t, journal.Header{ID: "e-runs", Principal: "ada", Session: "s-1", Gateway: one.Copies.Gateway()}, "")
	wantPending(ada, t, two, "e-runs")
	one.write(t, journal.Header{ID: "e-not-answered", Principal: "ada", Session: "s-1", Gateway: one.Copies.Gateway()}, ended("e-not-answered", "ada", "ok"))
	wantPending(ada, t, two, "e-not-answered")
	one.leave(t, "e-left", "")
	two.wantLast(ada, t, "e-left")
	lostAnswerElsewhere(ada, t, one, two)
	resumedHere(ada, t, one, two)
}

// wantPending: a caller gets an error if its last program runs on another gateway, which may have died. Others are not.
func wantPending(ada context.Context, t *testing.T, two *sharing, id string) {
	t.Helper()
	got, err := two.LastFailed(ada, "")
	if got != "" || err == nil || !strings.Contains(err.Error(), id+", still runs, or its gateway was lost a moment ago") || !strings.Contains(err.Error(), `resume="e-failed" for the one that failed before`) {
		t.Errorf("the last one runs elsewhere: %q, %v", got, err)
	}
	two.wantLast(tool.WithSession(ada, "s-2"), t, "e-later")
	two.wantLast(tool.WithEndpoint(ada, "desk"), t, "e-endpoint")
	two.wantLast(tool.WithPrincipal(t.Context(), "bob"), t, "e-bob")
}

// lostAnswerElsewhere: a program that succeeded is resumed only if its gateway was lost before it answered.
func lostAnswerElsewhere(ada context.Context, t *testing.T, one, two *sharing) {
	t.Helper()
	one.leave(t, "e-unanswered", ended("e-unanswered", "ada", "ok"))
	two.wantLast(ada, t, "e-unanswered")
	w := one.begin(t, journal.Header{ID: "e-well", Principal: "ada", Session: "s-1", Gateway: one.Copies.Gateway()})
	if err := errors.Join(w.Flush(), w.EndProgram([]byte(ended("e-well", "ada", "ok"))), w.SettleSuccess()); err != nil {
		t.Fatal(err)
	}
	two.wantLast(ada, t, "e-unanswered")
	if got, err := two.LastSucceeded(ada); err != nil || got != "e-well" {
		t.Errorf("the last that was answered is %q: %v", got, err)
	}
	for code, want := range map[string]string{"x": "e-well", "y": "e-unanswered"} { // code of which the answer was lost, or that was corrected
		if got, err := two.LastFailed(ada, code); err != nil || got != want {
			t.Errorf("the last one with the code %s is %q: %v", code, got, err)
		}
	}
	if got, err := two.LastSucceeded(tool.WithPrincipal(ada, "eve")); err != nil || got != "" {
		t.Errorf("the last of another that was answered is %q: %v", got, err)
	}
}

// resumedHere: the last one is resumed once, whoever asks, and the one before it is the last then.
func resumedHere(ada context.Context, t *testing.T, one, two *sharing) {
	t.Helper()
	f, _, err := two.OpenEnded(ada, "e-unanswered")
	if err == nil {
		err = f.Resume("e-again")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sharing{one, two} {
		s.wantLast(ada, t, "e-left")
	}
}

// TestLastIsLocked: the last program is the last one also while its journal is locked, because it is recorded, or read, or still runs. An
// earlier one in its place would be resumed by a client that means the last, and all calls of its program would be made again.
func TestLastIsLocked(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	_, one, _ := startTwo(t)
	<-one.recovered
	ada := tool.WithSession(tool.WithPrincipal(t.Context(), "ada"), "s-1")
	write := func(h journal.Header) *journal.File {
		h.Principal, h.Session, h.Gateway = "ada", "s-1", one.Copies.Gateway()
		w := one.create(t, one.Folder("ada"), h)
		if err := errors.Join(w.EndProgram([]byte(ended(h.ID, "ada", "failed"))), w.Flush(), w.Close()); err != nil {
			t.Fatal(err)
		}
		f, err := openJournal(one.History, workspace.Folder("ada"), h.ID)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := write(journal.Header{ID: "e-first"})
	one.wantLast(ada, t, "e-first")
	again := write(journal.Header{ID: "e-again", Resumes: "e-first"})
	if err := first.Resume("e-again"); err != nil {
		t.Fatal(err)
	}
	one.wantLast(ada, t, "e-again")
	one.create(t, one.Folder("ada"), journal.Header{ID: "e-runs", Principal: "ada", Session: "s-1", Gateway: one.Copies.Gateway()})
	if got, err := one.LastFailed(ada, ""); got != "" || err == nil || !strings.Contains(err.Error(), `e-runs, still runs, or its gateway was lost a moment ago`) || !strings.Contains(err.Error(), `resume="e-again" for the one that failed before`) {
		t.Errorf("the last one runs: %q, %v", got, err)
	}
	if err := errors.Join(first.Close(), again.Close()); err != nil {
		t.Error(err)
	}
}

// TestNothingToResume: an execution on record without a journal counts as unknown if it made no calls, so that a run of a workflow runs
// its program again. One that made calls does not.
func TestNothingToResume(t *testing.T) {
	t.Parallel()
	h := openTestHistory(t, store.Memory(), t.TempDir())
	h.Start()
	t.Cleanup(h.Close)
	ada := tool.WithPrincipal(t.Context(), "ada")
	for _, test := range []struct {
		record  Record
		unknown bool
		want    string
	}{
		{Record{ID: "e-idle"}, true, "e-idle made no calls: nothing to resume (run the program without resume)"},
		{Record{ID: "e-again", Resumes: "e-first"}, true, "e-again made no calls: nothing to resume (resume e-first)"},
		{Record{ID: "e-paid", Made: 1}, false, "the journal of e-paid has expired (check what it has done, then run the program without resume)"},
	} {
		test.record.Principal, test.record.Status = "ada", execution.Interrupted
		if err := h.write(ada, test.record); err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.OpenEnded(ada, test.record.ID); err == nil || err.Error() != test.want || errors.Is(err, ErrNoExecution) != test.unknown {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}
