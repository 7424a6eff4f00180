package workers

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/natsconn"
	"sallyport/internal/natsstream"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

const eventually = 40 * time.Second

// patientTimes are for a slow machine.
func patientTimes() natsstream.Times {
	return natsstream.Times{Beat: time.Second, Silence: time.Minute, Absence: time.Minute, Linger: 3 * time.Second}
}

// joined is a worker of a test.
type joined struct {
	name  string
	spool string
	state string
	stop  context.CancelFunc
	done  chan error
}

// join makes a worker, which ends with the test.
func join(t testing.TB, c *natscluster.Cluster, name string, seats int) *joined {
	t.Helper()
	return joinWith(t, c, name, seats, nil)
}

// joinWith makes a worker with services.
func joinWith(t testing.TB, c *natscluster.Cluster, name string, seats int, services map[string]sandbox.Service) *joined {
	t.Helper()
	return joinChanged(t, c, name, seats, func(o *remote.WorkerOptions) { o.Services = services })
}

// joinChanged makes a worker with other options.
func joinChanged(t testing.TB, c *natscluster.Cluster, name string, seats int, change func(o *remote.WorkerOptions)) *joined {
	t.Helper()
	rights := WorkerRights("sallyport", name)
	ctx, stop := context.WithCancel(context.Background())
	j := &joined{name: name, spool: t.TempDir(), state: testutil.ShortDir(t), stop: stop, done: make(chan error, 1)}
	opts := WorkerOptions{
		times:  patientTimes(),
		Server: natsconn.Server{URL: c.URL(), Creds: c.User(t, name, rights.Publish, rights.Subscribe), CA: c.CA, Name: name},
		Prefix: "sallyport", Name: name, Seats: seats, Labels: map[string]string{"zone": name}, Logger: testutil.Logger(t),
		Remote: remote.WorkerOptions{Version: "v1", Spool: j.spool, Host: sandbox.Options{
			Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: j.state, Snapshots: testutil.Snapshots(), Logger: testutil.Logger(t),
		}},
	}
	change(&opts.Remote)
	var work sync.WaitGroup
	work.Go(func() { j.done <- Work(ctx, opts) })
	t.Cleanup(func() {
		stop()
		work.Wait()
	})
	return j
}

// newPool is a gateway's pool, with the tree of the suite.
func newPool(t testing.TB, c *natscluster.Cluster, pool sandbox.Pool) *Pool {
	t.Helper()
	p, err := Open(Options{
		times:  patientTimes(),
		Server: c.Server(t.Name()), Prefix: "sallyport", Logger: testutil.Logger(t),
		Remote: remote.Options{Version: "v1", Guest: runtime.Guest(), Pool: pool},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Publish(sandboxtest.Tree()); err != nil {
		t.Fatal(err)
	}
	return p
}
