package catalog

import (
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/internal/config"
)

// connecting is a session that never gets further than its first attempt to connect.
type connecting struct{ session }

func (connecting) State() upstream.State { return upstream.State{Status: upstream.Connecting} }

// starting returns a catalog that has just begun to connect to upstreams.
func starting(names ...string) (*Catalog, map[string]*member) {
	c, members := &Catalog{opts: Options{ConnectWait: time.Hour}, ended: make(chan struct{})}, map[string]*member{}
	var all []*member
	for _, name := range names {
		m := newMember(config.Upstream{ID: name, Name: name})
		m.session = connecting{}
		close(m.booted)
		members[name], all = m, append(all, m)
	}
	c.roster.Store(newRoster(all))
	readiness{c}.resetDeadline()
	return c, members
}

// TestWaitForUnresponsive: a search waits 2 s at most for an upstream that does not answer, and once; as long as others
// arrive, it waits for the rest; a caller that names the upstream waits until the deadline.
func TestWaitForUnresponsive(t *testing.T) {
	for _, test := range []struct {
		name    string
		arrives map[string]time.Duration
		named   string
		want    time.Duration
	}{
		{name: "nobody answers", want: 2 * time.Second},
		{name: "one is fast", arrives: map[string]time.Duration{"a": 300 * time.Millisecond}, want: 2 * time.Second},
		{name: "both answer", arrives: map[string]time.Duration{"a": 300 * time.Millisecond, "b": 500 * time.Millisecond}, want: 500 * time.Millisecond},
		{name: "one after the other", arrives: map[string]time.Duration{"a": 1900 * time.Millisecond, "b": 2800 * time.Millisecond}, want: 2800 * time.Millisecond},
		{name: "one is late", arrives: map[string]time.Duration{"a": 1900 * time.Millisecond}, want: 2900 * time.Millisecond},
		{name: "a name", named: "b", arrives: map[string]time.Duration{"b": 9 * time.Second}, want: 9 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, members := starting("a", "b")
				for name, after := range test.arrives {
					time.AfterFunc(after, func() { close(members[name].shown) })
				}
				took := func() time.Duration {
					begun := time.Now()
					c.Await(t.Context(), test.named)
					return time.Since(begun)
				}
				if got := took(); got < test.want || got > test.want+3*pollInterval {
					t.Errorf("waited %v, want %v", got, test.want)
				}
				if got := took(); got > 0 {
					t.Errorf("waited again, %v", got)
				}
			})
		})
	}
}

// ready is a session that is connected, before the catalog has its offer.
type ready struct{ session }

func (ready) State() upstream.State { return upstream.State{Status: upstream.Ready} }

// TestWorks checks that an upstream works when it is connected and its tools are known, not before.
func TestWorks(t *testing.T) {
	m := newMember(config.Upstream{ID: "up"})
	m.session = ready{}
	close(m.booted)
	if m.status().Works() {
		t.Error("it works without an offer")
	}
	m.view.Store(&view{known: true})
	if !m.status().Works() {
		t.Error("it does not work with an offer")
	}
}
