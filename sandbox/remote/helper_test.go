package remote_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// machine is a worker that a client of the test dials, as often as it wants to.
type machine struct {
	opts  remote.WorkerOptions
	work  sync.WaitGroup
	mu    sync.Mutex
	lines []net.Conn // of the client
	dials int
}

// dial starts a worker in memory.
func (m *machine) dial(context.Context) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	m.mu.Lock()
	m.lines = append(m.lines, near)
	m.dials++
	m.mu.Unlock()
	m.work.Go(func() { _ = remote.ServeWorker(context.Background(), far, m.opts) })
	return near, nil
}

// cut breaks every connection that there is.
func (m *machine) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		_ = line.Close()
	}
	m.lines = nil
}

// dialCount counts connections.
func (m *machine) dialCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dials
}

// newMachine is one with real sandboxes.
func newMachine(t testing.TB) *machine {
	t.Helper()
	return &machine{opts: remote.WorkerOptions{Version: "v1", Spool: t.TempDir(), Host: sandbox.Options{
		Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: testutil.ShortDir(t), Snapshots: testutil.Snapshots(), Logger: testutil.Logger(t),
	}}}
}

// newClient is one of the machine, with the tree of the suite.
func newClient(t testing.TB, m *machine, pool sandbox.Pool) *remote.Client {
	t.Helper()
	c, err := remote.New(m.dial, &remote.Options{Version: "v1", Guest: runtime.Guest(), Name: "ssh://box", Pool: pool, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		m.work.Wait()
	})
	if err := c.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	return c
}
