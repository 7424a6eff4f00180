package connections_test

import (
	"crypto/rand"
	"net/url"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/connections"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/seal"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

// newHouses opens two gateways that share a store and a key, before one upstream.
func newHouses(t *testing.T) (houses [2]*house) {
	t.Helper()
	c := natscluster.Start(t, 1)
	key, err := seal.New([]byte(rand.Text() + rand.Text())[:seal.Size])
	if err != nil {
		t.Fatal(err)
	}
	as := authserver.New(t, nil)
	rs := oauthtest.New(t, as, nil)
	for i := range houses {
		in, err := store.Connect(store.Remote{Server: c.Server(t.Name()), Seal: key, Logger: testutil.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
		testutil.Eventually(t, "the store answers", 20*time.Second, func() bool { return in.Available() == nil })
		h := &house{t: t, as: as, rs: rs}
		if h.logins, err = sharedrecords.OpenSealed(in, "logins", store.Limits{Records: 100, Keep: true}); err != nil {
			t.Fatal(err)
		}
		h.open("upstreams:\n  tickets: {url: "+rs.URL+", auth: {per: principal}}\napproval: {wait: 20s}\n", &gateway.Options{Records: in})
		houses[i] = h
	}
	return houses
}

// TestLoginAtTwoGateways: a login that begins at one gateway ends at another, once, for the principal that began it, and is used at both.
func TestLoginAtTwoGateways(t *testing.T) {
	t.Parallel()
	houses := newHouses(t)
	one, two := houses[0], houses[1]
	ada := one.of("token:ada")
	state, err := one.g.Connections.Connect(ada, "tickets", connections.How{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := two.g.Connections.Started(two.of("token:bob"), state); ok {
		t.Error("another principal sees the page of a login")
	}
	page, ok := two.g.Connections.Started(ada, state)
	if !ok {
		t.Fatal("the login that has begun is not known at the other gateway")
	}
	got := one.consent("ada", page)
	if _, err := two.g.Connections.Finish(two.of("token:bob"), got); tool.AsError(err).Kind != tool.Invalid {
		t.Errorf("another principal finishes a login: %v", err)
	}
	if id, err := two.g.Connections.Finish(two.of("token:ada"), got); err != nil || id != "tickets" {
		t.Fatalf("%q, %v", id, err)
	}
	for _, h := range houses {
		if id, err := h.g.Connections.Finish(h.of("token:ada"), got); err == nil {
			t.Errorf("a login is finished twice: %q", id)
		}
		if id, err := h.g.Connections.Finish(h.of("token:ada"), url.Values{"state": {"unknown"}, "code": {"x"}}); err == nil {
			t.Errorf("an unknown login is finished: %q", id)
		}
		h.is("token:ada", "ada")
	}
	one.login("token:bob", "bob")
	two.is("token:bob", "bob")
	if err := one.g.Connections.Disconnect(one.of("token:bob"), "tickets"); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "the login has ended at the other gateway", 20*time.Second, func() bool { return !two.connected(two.of("token:bob")) })
	two.is("token:ada", "ada")
}

// TestAwaitAtAnotherGateway: a call that waits for a login continues when the person logs in at another gateway.
func TestAwaitAtAnotherGateway(t *testing.T) {
	t.Parallel()
	houses := newHouses(t)
	one, two := houses[0], houses[1]
	one.login("token:bob", "bob")
	one.is("token:bob", "bob") // so that the tools are known
	called := make(chan error, 1)
	go func() {
		_, err := one.call(one.of("token:ada"), "whoami")
		called <- err
	}()
	two.login("token:ada", "ada")
	if err := <-called; err != nil {
		t.Error(err)
	}
	one.is("token:ada", "ada")
}
