package cluster

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/workers"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

func connect(t *testing.T, c *natscluster.Cluster, name string) *store.Store {
	t.Helper()
	records, err := store.Connect(store.Remote{Server: c.Server(name), Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close() }) // it may be closed
	return records
}

// TestReport has two gateways, and a process that is none: each gateway lists both with their load, until one leaves.
func TestReport(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	servers := natscluster.Start(t, 1)
	one, two := connect(t, servers, "sallyport 1.2.3"), connect(t, servers, "sallyport 1.2.4")
	connect(t, servers, "sallyport 1.2.3")
	one.ReportLoad(func() store.Load { return store.Load{Running: 2, Waiting: 1, Seats: 8} })
	two.ReportLoad(func() store.Load { return store.Load{Seats: 4} })
	set := config.Default()
	set.Store.URL, set.Store.Creds, set.Store.TLS.CA = servers.URL(), servers.Creds, servers.CA
	c, op := New(one, &set, "test"), tool.WithOperator(t.Context(), "op")
	versions := func() map[string]string {
		r, err := c.Report(op)
		if err != nil || r.Problem != "" || len(r.Workers) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		all := map[string]string{}
		for _, g := range r.Gateways {
			all[g.Version] = g.State
			if g.Self != (g.ID == one.Self()) || g.Self && (g.Load != store.Load{Running: 2, Waiting: 1, Seats: 8}) || g.PID != os.Getpid() || time.Since(g.Beaten) > time.Hour {
				t.Errorf("%+v", g)
			}
		}
		return all
	}
	testutil.Eventually(t, "both are listed", time.Minute, func() bool {
		return maps.Equal(versions(), map[string]string{"1.2.3": Alive, "1.2.4": Alive})
	})
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "one has left", time.Minute, func() bool { return maps.Equal(versions(), map[string]string{"1.2.3": Alive}) })
	if _, err := c.Report(t.Context()); tool.AsError(err).Kind != tool.Denied {
		t.Errorf("for one who is no operator: %v", err)
	}
	servers.Kill(t, 0)
	testutil.Eventually(t, "the workers cannot be asked", time.Minute, func() bool {
		r, err := c.Report(op)
		return err == nil && strings.Contains(r.Problem, "the workers cannot be asked")
	})
}

// TestAlone: a gateway with a store of its own is in no cluster.
func TestAlone(t *testing.T) {
	t.Parallel()
	set := config.Default()
	for _, records := range []*store.Store{nil, store.Memory()} {
		records.ReportLoad(func() store.Load { return store.Load{} })
		if _, err := New(records, &set, "test").Report(tool.WithOperator(t.Context(), "op")); tool.AsError(err).Kind != tool.NotFound {
			t.Error(err)
		}
	}
}

// TestWorkerStates: what a worker says becomes its state, and what it lacks.
func TestWorkerStates(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]workers.Beat{
		Alive:    {Seats: 2, Busy: 2},
		Draining: {Seats: 2, Busy: 1, Draining: true},
		Drained:  {Seats: 2, Draining: true},
	} {
		b.Labels, b.Lacks = map[string]string{"zone": "a"}, []sandbox.Interpreter{sandbox.Node}
		w := workerOf(workers.Worker{Beat: b, Name: "w1"}, []string{"zone=a", "gpu=yes"})
		if w.State != want || w.Seats != b.Seats || w.Busy != b.Busy || !slices.Equal(w.Lacks, []string{"gpu=yes", string(sandbox.Node)}) {
			t.Errorf("%s: %+v", want, w)
		}
	}
}
