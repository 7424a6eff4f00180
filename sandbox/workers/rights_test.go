package workers

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// raw is a connection of a test. It counts what the server denied, and separately what was published to [barrier].
type raw struct {
	*nats.Conn

	denied, barriers atomic.Int64
}

// barrier is a subject that nobody may publish to.
const barrier = "barrier"

func connectRaw(t *testing.T, c *natscluster.Cluster, creds string) *raw {
	t.Helper()
	r := &raw{}
	conn, unanswered, err := natsconn.Server{URL: c.URL(), Creds: creds, CA: c.CA}.Connect(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		switch {
		case errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), barrier):
			r.barriers.Add(1)
		case errors.Is(err, nats.ErrPermissionViolation):
			r.denied.Add(1)
		}
	}))
	if err := errors.Join(err, unanswered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	r.Conn = conn
	return r
}

// denies reports whether the server denies something. What follows is denied after it.
func (r *raw) denies(t *testing.T, do func() error) bool {
	t.Helper()
	before, passed := r.denied.Load(), r.barriers.Load()
	if err := errors.Join(do(), r.Publish(barrier, nil)); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the server has answered", eventually, func() bool { return r.barriers.Load() > passed })
	return r.denied.Load() > before
}

func (r *raw) deniesSubscribe(t *testing.T, subject string) bool {
	t.Helper()
	return r.denies(t, func() error {
		_, err := r.Subscribe(subject, func(*nats.Msg) {})
		return err
	})
}

func (r *raw) deniesPublish(t *testing.T, subject string) bool {
	t.Helper()
	return r.denies(t, func() error { return r.Publish(subject, nil) })
}
