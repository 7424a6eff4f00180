//go:build linux

package workers

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/natsconn"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// TestPool has one server, one gateway and real sandboxes for all parts.
func TestPool(t *testing.T) {
	c := natscluster.Start(t, 1)
	p := newPool(t, c, sandbox.Pool{Min: 1, Max: 2})
	one := join(t, c, "one", 2)
	t.Run("conformance", func(t *testing.T) {
		sandboxtest.RunNamed(t, p,
			"things of every kind are emitted", "results that are hard to read hurt no other call", "a call that never ends is cancelled with its program")
	})
	t.Run("waiting", func(t *testing.T) {
		testutil.Eventually(t, "a sandbox waits", eventually, func() bool { n, _ := p.Waiting(sandbox.Python); return n > 0 })
	})
	t.Run("server restarts", func(t *testing.T) { restartServer(t, c, p) })
	t.Run("permissions", func(t *testing.T) { refusePermissions(t, c, one) })
	t.Run("orders", func(t *testing.T) { holdWorker(t, c, p) })
	t.Run("drain", func(t *testing.T) { drainWorker(t, c, p, one) })
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{}); err == nil {
		t.Error("a closed pool runs a program")
	}
}

// members returns how many worker processes a pool uses. Its registry can be ahead of it.
func members(p *Pool) (n int) {
	for _, s := range p.Stats() {
		n += s.Processes
	}
	return n
}

// value runs a program whose value must be this, in a session.
func value(t *testing.T, p *Pool, session, code, want string) {
	t.Helper()
	job := sandboxtest.Job(sandbox.Python, code)
	job.Session = session
	o, err := p.Run(t.Context(), job, sandboxtest.Echo{})
	if err != nil || o.Value == nil || o.Value.Text != want {
		t.Errorf("%s: %+v, %v", code, o, err)
	}
}

// blockingCaller tells when a program calls, and answers when it is told to.
type blockingCaller struct{ called, answer chan struct{} }

func newBlockingCaller() blockingCaller {
	return blockingCaller{make(chan struct{}, 1), make(chan struct{})}
}

func (b blockingCaller) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	b.called <- struct{}{}
	select {
	case <-b.answer:
	case <-ctx.Done():
	}
	return tool.Result{Structured: []byte("7")}, ctx.Err()
}

// start starts a program that calls, and waits until it has. The returned function ends it and wants its result.
func start(t *testing.T, p *Pool) (end func()) {
	t.Helper()
	caller, result := newBlockingCaller(), make(chan sandbox.Outcome, 1)
	go func() {
		o, err := p.Run(context.Background(), sandboxtest.Job(sandbox.Python, "from sallyport import call\ncall('test.echo', {})"), caller)
		if err != nil {
			o.Notes = append(o.Notes, err.Error())
		}
		result <- o
	}()
	select {
	case <-caller.called:
	case o := <-result:
		t.Fatalf("it ended before its call: %+v", o)
	}
	return func() {
		t.Helper()
		close(caller.answer)
		if o := <-result; o.Status != sandbox.OK || o.Value == nil || o.Value.Text != "7" {
			t.Errorf("%+v", o)
		}
	}
}

// restartServer restarts the server while a program runs: neither it nor a session is lost.
func restartServer(t *testing.T, c *natscluster.Cluster, p *Pool) {
	t.Helper()
	value(t, p, "s", "x = 41\nx", "41")
	end := start(t, p)
	c.Kill(t, 0)
	c.Start(t, 0)
	end()
	value(t, p, "s", "x + 1", "42")
}

// holdWorker tells a worker to take no programs, while one runs there, and to take them again. Only a gateway can.
func holdWorker(t *testing.T, c *natscluster.Cluster, p *Pool) {
	t.Helper()
	order := func(creds, name string, o Order, idle bool) ([]Worker, error) {
		return Command(t.Context(), natsconn.Server{URL: c.URL(), Creds: creds, CA: c.CA}, "sallyport", name, o, idle, time.Second)
	}
	end := start(t, p)
	if found, err := order(c.Creds, "one", Drain, false); err != nil || len(found) != 1 || !found[0].Draining || found[0].Busy != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	_, err := p.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{})
	if err == nil || !strings.Contains(err.Error(), "draining") {
		t.Errorf("a worker that drains: %v", err)
	}
	end()
	if found, err := order(c.Creds, "one", Drain, true); err != nil || len(found) != 1 || found[0].Busy != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	var unknown *UnknownError
	if _, err := order(c.Creds, "two", Drain, false); !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"one"}) {
		t.Errorf("a worker that has not joined: %v", err)
	}
	rights := WorkerRights("sallyport", "one")
	for _, creds := range []string{c.NoCreds, c.User(t, "same", rights.Publish, rights.Subscribe)} {
		if _, err := order(creds, "one", Resume, false); err == nil {
			t.Error("a worker gives orders")
		}
	}
	if !p.Stats()[0].Draining {
		t.Error("a worker has given an order")
	}
	if found, err := order(c.Creds, "one", Resume, false); err != nil || found[0].Draining {
		t.Errorf("%+v, %v", found, err)
	}
	testutil.Eventually(t, "the gateway knows", eventually, func() bool { return !p.Stats()[0].Draining })
	value(t, p, "s", "x + 1", "42")
}

// drainWorker ends the worker of a session while a program runs there: it ends, the next ones run on the other worker, and the
// last worker's end is an error that says so.
func drainWorker(t *testing.T, c *natscluster.Cluster, p *Pool, one *joined) {
	t.Helper()
	end := start(t, p)
	two := join(t, c, "two", 1)
	testutil.Eventually(t, "both are known", eventually, func() bool { return members(p) == 2 })
	value(t, p, "s", "x + 1", "42") // stays where it was, though the other has more room
	one.stop()
	testutil.Eventually(t, "it drains", eventually, func() bool { return p.Stats()[0].Draining })
	value(t, p, "", "2", "2")
	value(t, p, "s", "'x' in globals()", "false")
	end()
	if err := <-one.done; err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(one.state, "*")); len(left) > 0 {
		t.Errorf("the worker left %q", left)
	}
	two.stop()
	if err := <-two.done; err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "both have left", eventually, func() bool { return members(p) == 0 })
	_, err := p.Run(t.Context(), sandboxtest.Job(sandbox.Python, "1"), sandboxtest.Echo{})
	if err == nil || !strings.Contains(err.Error(), "sallyport worker --join") {
		t.Errorf("%v", err)
	}
}

// refusePermissions wants that a worker can use its own subjects only, and that others without permissions get nothing.
func refusePermissions(t *testing.T, c *natscluster.Cluster, one *joined) {
	t.Helper()
	mine := newSubjects("sallyport")
	rights := WorkerRights("sallyport", "thief")
	thief := connectRaw(t, c, c.User(t, "thief", rights.Publish, rights.Subscribe))
	nobody := connectRaw(t, c, c.NoCreds)
	for name, who := range map[string]*raw{"another worker": thief, "nobody": nobody} {
		for _, subject := range []string{">", "sallyport.>", "$JS.>", "_INBOX.>", "$KV.>", mine.beats(), mine.toWorker("one", "*", "*"), mine.toGateway("*", "*", "*"), mine.dial("one", "*")} {
			if !who.deniesSubscribe(t, subject) {
				t.Errorf("%s subscribes to %s", name, subject)
			}
		}
		for _, subject := range []string{"sallyport.log.x", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.MSG.GET.sallyport_made", "_INBOX.sallyport.x.y", mine.beat("one", "x"), mine.toGateway("one", "x", "y"), mine.toWorker("one", "x", "y"), mine.dial("one", "x")} {
			if !who.deniesPublish(t, subject) {
				t.Errorf("%s publishes to %s", name, subject)
			}
		}
	}
	if thief.deniesSubscribe(t, mine.toWorker("thief", "*", "*")) || thief.deniesPublish(t, mine.beat("thief", "x")) {
		t.Error("a worker may not use its own subjects")
	}
	found, err := List(t.Context(), c.Server(""), "sallyport", time.Second)
	if err != nil || len(found) != 1 || found[0].Name != one.name || found[0].Labels["zone"] != "one" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := List(t.Context(), natsconn.Server{URL: c.URL(), CA: c.CA}, "sallyport", time.Second); err == nil {
		t.Error("a client without credentials connects")
	}
}
