package cluster

import (
	"context"
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
	return connectTo(t, store.Remote{Server: c.Server(name)})
}

func connectTo(t *testing.T, set store.Remote) *store.Store {
	t.Helper()
	set.Logger = testutil.Logger(t)
	records, err := store.Connect(set)
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

// TestServers has three servers: one is killed, is reported as lost, and is alive again when it has caught up.
func TestServers(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	servers := natscluster.Start(t, 3)
	records := connectTo(t, store.Remote{Server: servers.Server("sallyport 1"), Replicas: 3})
	leads, connected := 0, ""
	states := func() map[string]string {
		ctx, cancel := context.WithTimeout(t.Context(), storeTime)
		defer cancel()
		_, found, err := Store(ctx, records)
		if err != nil {
			t.Log(err) // a leader is elected
		}
		leads, connected = 0, ""
		all := map[string]string{}
		for _, s := range found {
			all[s.Name] = s.State
			leads += s.Leads
			if s.Connected {
				connected = s.Name
			}
		}
		return all
	}
	isAll := func(all map[string]string, state string) bool {
		return len(all) == 3 && !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(s string) bool { return s != state })
	}
	testutil.Eventually(t, "all are alive", time.Minute, func() bool { return isAll(states(), Alive) && leads > 0 && connected != "" })
	victim := (servers.Index(connected) + 1) % 3
	servers.Kill(t, victim)
	testutil.Eventually(t, "one is lost", time.Minute, func() bool {
		all := states()
		for name, state := range all {
			if (servers.Index(name) == victim) != (state == Lost) {
				return false
			}
		}
		return len(all) == 3
	})
	servers.Start(t, victim)
	testutil.Eventually(t, "it has caught up", time.Minute, func() bool { return isAll(states(), Alive) })
}

// TestServerStates: what the leaders say about a server becomes its state.
func TestServerStates(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]store.ServerState{
		Alive:  {Name: "n", Connected: true, Replicas: 3, Leads: 2},
		Behind: {Name: "n", Connected: true, Replicas: 3, Leads: 2, Behind: 1, Lag: 9},
		Lost:   {Name: "n", Connected: true, Replicas: 3, Leads: 2, Behind: 1, Lag: 9, Offline: true},
	} {
		if got := serverOf(s); got != (Server{Name: "n", Connected: true, State: want, Streams: 3, Leads: 2, Behind: s.Behind, Lag: s.Lag}) {
			t.Errorf("%s: %+v", want, got)
		}
	}
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
