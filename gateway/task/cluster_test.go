package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/task"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

// sharing is a gateway that shares a store.
type sharing struct {
	*task.Tasks

	records *store.Store
}

func openSharing(t *testing.T, c *natscluster.Cluster, programs slow) *sharing {
	t.Helper()
	b := newBudget(t, config.DailyTasks{})
	s := &sharing{records: storetest.Connect(t, c.Server(""))}
	var err error
	s.Tasks, err = task.Open(task.Options{Gateway: programs, Settings: settings{&b.cfg}, Records: s.records, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // never an error
	return s
}

// start begins a task whose program does not end, or whose answer comes when it may.
func (s *sharing) start(ctx context.Context, t *testing.T, peer tool.Peer) (id string) {
	t.Helper()
	testutil.Eventually(t, "the store answers", time.Minute, func() bool { return s.records.Available() == nil })
	begun, err := s.Start(ctx, task.Request{Task: "Make coffee", Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	return begun.ID
}

// becomes waits until a gateway shows a task with a status, and returns it.
func (s *sharing) becomes(ctx context.Context, t *testing.T, id string, want task.Status) (one task.Task) {
	t.Helper()
	testutil.Eventually(t, "the task is "+string(want), time.Minute, func() bool {
		var err error
		if one, err = s.Show(ctx, id); err == nil && one.Over() && one.Status != want {
			t.Fatalf("the task is %s: %s", one.Status, one.Error)
		}
		return err == nil && one.Status == want
	})
	return one
}

// TestTasksOfCluster: all gateways show a task that runs at one of them, and cancel it.
func TestTasksOfCluster(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := openSharing(t, c, slow{}), openSharing(t, c, slow{})
	ann, bob := tool.WithPrincipal(t.Context(), "ann"), tool.WithPrincipal(t.Context(), "bob")
	id := one.start(ann, t, sampled(block("python", "1"), ""))
	two.becomes(ann, t, id, task.Running)
	if all, err := two.List(ann, 10); err != nil || len(all) != 1 || all[0].Status != task.Running {
		t.Errorf("the other gateway lists %+v, %v", all, err)
	}
	if _, err := two.Show(bob, id); err == nil {
		t.Error("another principal sees the task")
	}
	if err := two.Cancel(bob, id); err == nil {
		t.Error("another principal cancels the task")
	}
	if _, err := two.StartResume(ann, id); err == nil || !strings.Contains(err.Error(), "it is running") {
		t.Errorf("a task that runs is resumed: %v", err)
	}
	var states []task.Task
	followed := make(chan task.Task, 1)
	go func() {
		last, _ := two.Follow(ann, id, func(one task.Task) { states = append(states, one) })
		followed <- last
	}()
	time.Sleep(3 * time.Second) // in which nothing changes
	if err := two.Cancel(ann, id); err != nil {
		t.Fatal(err)
	}
	if last := <-followed; last.Status != task.Canceled || states[0].Status != task.Running {
		t.Errorf("who follows it at the other gateway sees %s at first and %s at last", states[0].Status, last.Status)
	}
	for i := range states[1:] {
		if reflect.DeepEqual(states[i], states[i+1]) {
			t.Errorf("who follows it sees the same twice: %+v", states[i])
		}
	}
	if err := two.Cancel(ann, id); err == nil || !strings.Contains(err.Error(), "the task has ended: canceled") {
		t.Errorf("a canceled task is canceled: %v", err)
	}

	id = one.start(ann, t, sampled(block("python", "1"), ""))
	two.becomes(ann, t, id, task.Running)
	if err := one.records.Close(); err != nil { // the gateway ends
		t.Fatal(err)
	}
	if left := two.becomes(ann, t, id, task.Failed); left.Error != "its process ended" {
		t.Errorf("the task of a gateway that has ended: %q", left.Error)
	}
}

// gated is a client whose model gives its answer when it may.
type gated struct{ asked, may chan struct{} }

func (gated) Notify(string, json.RawMessage) {}

func (g gated) Ask(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	close(g.asked)
	select {
	case <-g.may:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return json.Marshal(map[string]any{"role": "assistant", "model": "theirs", "content": map[string]any{"type": "text", "text": block("answer", "black")}})
}

// TestTaskEndsWithoutStore: a task ends while the store does not answer. Its answer is kept until the store answers again.
func TestTaskEndsWithoutStore(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	one, two := openSharing(t, c, slow{}), openSharing(t, c, slow{})
	ann, gate := tool.WithPrincipal(t.Context(), "ann"), gated{make(chan struct{}), make(chan struct{})}
	id := one.start(ann, t, gate)
	<-gate.asked
	two.becomes(ann, t, id, task.Running)
	c.Signal(t, 0, syscall.SIGSTOP)
	testutil.Eventually(t, "the store is away", time.Minute, func() bool { return errors.Is(one.records.Available(), store.ErrUnreachable) })
	close(gate.may)
	one.becomes(ann, t, id, task.Done)
	c.Signal(t, 0, syscall.SIGCONT)
	if done := two.becomes(ann, t, id, task.Done); done.Answer != "black" {
		t.Errorf("the answer is %q", done.Answer)
	}
}
