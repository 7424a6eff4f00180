package history

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/journal"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

// goneGateway is the id of a gateway that has died.
const goneGateway = "g-gone"

// sharing is a gateway with records on a server, and the takeovers that it has recorded.
type sharing struct {
	*History

	mu     sync.Mutex
	events []audit.Event
	refuse error
}

func openSharing(t *testing.T, c *natscluster.Cluster) *sharing {
	t.Helper()
	records := storetest.Connect(t, c.Server(""))
	s := &sharing{History: openTestHistory(t, records, t.TempDir())}
	s.opts.OnTaken = s.taken
	return s
}

func (s *sharing) taken(ctx context.Context, e audit.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Principal, e.Session = tool.Principal(ctx), tool.Session(ctx)
	if _, err := s.load(ctx, e.Execution, false); !errors.Is(err, store.ErrNotFound) {
		return errors.New("it is on record before that is recorded")
	}
	if s.refuse == nil {
		s.events = append(s.events, e)
	}
	return s.refuse
}

// leave writes the journal of a program of ada on a lost gateway that was making a call.
func (s *sharing) leave(t *testing.T, id, end string) {
	t.Helper()
	s.write(t, journal.Header{ID: id, Principal: "ada", Session: "s-1", Gateway: goneGateway}, end)
}

// write writes a journal with a call to the store, and its end unless that is ""; the gateway has no file of it.
func (s *sharing) write(t *testing.T, h journal.Header, end string) {
	t.Helper()
	w, err := s.begin(t, h), error(nil)
	if end != "" {
		err = w.EndProgram([]byte(end))
	}
	if err = errors.Join(err, w.Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// pay is a call that must not be made twice.
var pay = journal.Start{Tool: tool.ID{Upstream: "bank", Name: "pay"}, Fence: true}

// begin creates the journal of a program that makes a call.
func (s *sharing) begin(t *testing.T, h journal.Header) *journal.Writer {
	t.Helper()
	w := s.create(t, t.TempDir(), h)
	if _, err := w.Begin(pay); err != nil {
		t.Fatal(err)
	}
	return w
}

// create creates the journal of a program.
func (s *sharing) create(t *testing.T, dir string, h journal.Header) *journal.Writer {
	t.Helper()
	h.Started = time.Now()
	if h.Program == nil {
		h.Program = []byte(`{"code":"x","language":"python"}`)
	}
	w, err := journal.Create(dir, h, nil, &journal.Options{Copy: s.Copies.Copy(workspace.Folder(h.Principal), h.ID)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() }) // most tests have closed it
	return w
}

// startTwo starts two gateways that share the records on a server.
func startTwo(t *testing.T) (c *natscluster.Cluster, one, two *sharing) {
	t.Helper()
	c = natscluster.Start(t, 1)
	one, two = openSharing(t, c), openSharing(t, c)
	one.Start()
	two.Start()
	t.Cleanup(func() { one.Close(); two.Close() })
	return c, one, two
}

// look looks once for executions of lost gateways.
func (s *sharing) look(t *testing.T) {
	t.Helper()
	if err := s.Copies.Left(t.Context(), recovery{s.History}.one); err != nil {
		t.Error(err)
	}
}

func (s *sharing) isRecorded(t *testing.T, id string) bool {
	t.Helper()
	r, err := s.load(tool.WithPrincipal(t.Context(), "ada"), id, false)
	return err == nil && r.Status == execution.Interrupted
}

// TestTakeoverIsAudited has two gateways, and executions of a third one that was lost.
func TestTakeoverIsAudited(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	for name, part := range map[string]func(t *testing.T, one, two *sharing){
		"taken once": takenOnce, "not recorded": takeoverNotRecorded, "taker is lost": takerLost, "ended before": endedBefore,
	} {
		t.Run(name, func(t *testing.T) { part(t, openSharing(t, c), openSharing(t, c)) })
	}
}

// takenOnce: of two gateways, one takes an execution over, and says whose it is, who is lost and what is in doubt.
func takenOnce(t *testing.T, one, two *sharing) {
	t.Helper()
	one.leave(t, "e-once", "")
	var both sync.WaitGroup
	for _, s := range []*sharing{one, two} {
		both.Go(func() { s.look(t) })
	}
	both.Wait()
	one.look(t)
	two.look(t)
	all := append(one.events, two.events...)
	if len(all) != 1 || !one.isRecorded(t, "e-once") {
		t.Fatalf("%d events: %+v", len(all), all)
	}
	e := all[0]
	if e.Kind != audit.ExecutionTaken || e.Execution != "e-once" || e.Principal != "ada" || e.Session != "s-1" || e.Gateway != goneGateway || e.Outcome != "interrupted" || e.Calls != 1 || !strings.Contains(e.Note, "bank.pay") {
		t.Errorf("%+v", e)
	}
}

// takeoverNotRecorded: an execution is not on record as taken over while that cannot be recorded.
func takeoverNotRecorded(t *testing.T, one, two *sharing) {
	t.Helper()
	one.refuse = errors.New("the disk is full")
	one.leave(t, "e-refused", "")
	one.look(t)
	two.look(t)
	if one.isRecorded(t, "e-refused") || len(two.events) > 0 {
		t.Fatalf("it is on record, or the other gateway says that it took it: %+v", two.events)
	}
	one.refuse = nil
	one.look(t)
	if len(one.events) != 1 || !one.isRecorded(t, "e-refused") {
		t.Errorf("%+v", one.events)
	}
}

// takerLost: the gateway that took an execution over is lost before it has recorded that; another one records it.
func takerLost(t *testing.T, one, two *sharing) {
	t.Helper()
	one.leave(t, "e-twice", `{"record":{"id":"e-twice","principal":"ada","session":"s-1","status":"interrupted"},"taken_by":"g-gone-too"}`)
	two.look(t)
	if len(two.events) != 1 || two.events[0].Gateway != goneGateway || !two.isRecorded(t, "e-twice") {
		t.Errorf("%+v", two.events)
	}
}

// endedBefore: an execution that has ended before its gateway was lost is not taken over.
func endedBefore(t *testing.T, one, two *sharing) {
	t.Helper()
	one.leave(t, "e-ended", `{"record":{"id":"e-ended","principal":"ada","status":"failed"}}`)
	two.look(t)
	if r, err := two.load(tool.WithPrincipal(t.Context(), "ada"), "e-ended", false); err != nil || r.Status != "failed" || len(two.events) > 0 {
		t.Errorf("%+v %v %+v", r, err, two.events)
	}
}

// TestEndWithoutStore: an execution ends while the store does not answer. Its end is on record when the store answers again, so that
// another gateway does not take it for one that still runs.
func TestEndWithoutStore(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c, one, two := startTwo(t)
	ada, id := tool.WithPrincipal(t.Context(), "ada"), "e-ends"
	w := one.create(t, one.Folder("ada"), journal.Header{ID: id, Principal: "ada", Gateway: one.Copies.Gateway()})
	if _, err := w.Begin(pay); err != nil {
		t.Fatal(err)
	}
	c.Signal(t, 0, syscall.SIGSTOP)
	if err := one.put(ada, Record{ID: id, Principal: "ada", Status: sandbox.Failed, Made: 1}, &toolcall.Execution{Journal: w}, nil, nil); err != nil {
		t.Error(err)
	}
	one.Flush(ada, id)
	c.Signal(t, 0, syscall.SIGCONT)
	testutil.Eventually(t, "the execution is on record", time.Minute, func() bool {
		r, err := two.load(ada, id, false)
		return err == nil && r.Status == sandbox.Failed
	})
	var resumed *journal.File
	testutil.Eventually(t, "another gateway can resume the execution", time.Minute, func() bool {
		var err error
		resumed, _, err = two.OpenEnded(ada, id)
		return err == nil
	})
	if err := resumed.Close(); err != nil {
		t.Error(err)
	}
	if len(one.events)+len(two.events) > 0 {
		t.Errorf("it was taken over, although its gateway lives: %+v %+v", one.events, two.events)
	}
}

// TestVoid: a gateway was paused before the first call of a step's program, and the run goes on elsewhere. The program makes no call when its
// gateway continues.
func TestVoid(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	_, one, two := startTwo(t)
	ada := tool.WithPrincipal(t.Context(), "ada")
	run := toolcall.WithRun(ada, "r-one")
	create := func(id string) *journal.Writer {
		return one.create(t, t.TempDir(), journal.Header{ID: id, Principal: "ada", Root: "r-one", Gateway: one.Copies.Gateway()})
	}
	paused, paid := create("e-paused"), create("e-paid")
	if _, err := paid.Begin(pay); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also when it is asked again
		if _, _, err := two.OpenEnded(run, "e-paused"); !errors.Is(err, ErrNoExecution) {
			t.Errorf("a program without a journal: %v", err)
		}
	}
	if _, err := paused.Begin(pay); !errors.Is(err, journal.ErrTaken) {
		t.Errorf("it makes a call when its gateway continues: %v", err)
	}
	if _, _, err := two.OpenEnded(run, "e-paid"); !errors.Is(err, ErrRunning) {
		t.Errorf("a program that has made a call: %v", err)
	}
	two.wantLast(ada, t, "")
	if _, err := two.LastSucceeded(ada); err != nil {
		t.Error(err)
	}
	alone := create("e-alone")
	if _, _, err := two.OpenEnded(ada, "e-alone"); !errors.Is(err, ErrNoExecution) {
		t.Errorf("an unknown id: %v", err)
	}
	if _, err := alone.Begin(pay); err != nil {
		t.Errorf("who asks for an unknown id of no run ends it: %v", err)
	}
}
