package httpserver_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway/httpserver"
	"sallyport/internal/access"
	"sallyport/internal/seal"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// sharedRealm has two gateways of one store behind a load balancer, which sends each request to the chosen one.
type sharedRealm struct {
	*realm

	servers *natscluster.Cluster
	chosen  atomic.Int32
	turns   atomic.Bool // each request goes to the other one than the last
}

func newSharedRealm(t *testing.T, refresh time.Duration) *sharedRealm {
	t.Helper()
	p, opts := newPeople(t, refresh, nil)
	key, err := seal.New([]byte(rand.Text() + rand.Text())[:seal.Size])
	if err != nil {
		t.Fatal(err)
	}
	s := &sharedRealm{realm: p, servers: natscluster.Start(t, 1)}
	var gateways [2]string
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		at := s.chosen.Load()
		if s.turns.Load() {
			s.chosen.Store(1 - at)
		}
		target, err := url.Parse(gateways[at])
		if err != nil {
			t.Error(err)
		}
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(front.Close)
	p.origin = front.URL
	for i := range gateways {
		own := *opts
		own.Directory, own.Seal, own.Site, own.Sessions = access.NewDirectory(), key, front.URL, sharedSessions(t, s.servers, key)
		gateways[i] = startServer(t, &own, func(l net.Listener, o *httpserver.Options) *httpserver.Server { return httpserver.New(l, o) })
	}
	return s
}

func sharedSessions(t *testing.T, c *natscluster.Cluster, key *seal.Key) *access.Sessions {
	t.Helper()
	in, err := store.Connect(store.Remote{Server: c.Server(t.Name()), Seal: key, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	tokens, err := sharedrecords.Open(in, "tokens", store.Limits{Records: 10, Keep: true})
	sealed, err2 := sharedrecords.OpenSealed(in, "sessions", store.Limits{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return access.NewSharedSessions(access.OpenTokens(access.InRecords(tokens), nil), sealed, testutil.Logger(t))
}

// TestSharedSignIn: a sign-in that begins at one gateway ends at another, its session is known to both, and a logout at one ends it at both.
func TestSharedSignIn(t *testing.T) {
	t.Parallel()
	s := newSharedRealm(t, time.Hour)
	ann := s.person()
	back := ann.begin("u1", "/login/start?next=%2Fui%2Fexecutions")
	s.chosen.Store(1)
	ann.want(ann.arrive(back), "303 /ui/executions")
	for i := range int32(2) {
		s.chosen.Store(i)
		ann.want(ann.get("/"), `operator "oauth:ann@example.com"`)
	}
	ann.want(ann.with(ann.web, http.MethodPost, "/logout"), "303 /login")
	ann.want(ann.get("/"), "303 /login")
	time.Sleep(sharedrecords.Recent)
	s.chosen.Store(0)
	ann.want(ann.get("/"), "303 /login")
}

// TestSharedSessionRenewal: requests at both gateways renew a session all the time at a provider that ends all of a login when a refresh
// token comes twice. What changes at the provider is in force at both.
func TestSharedSessionRenewal(t *testing.T) {
	t.Parallel()
	s := newSharedRealm(t, 50*time.Millisecond)
	s.turns.Store(true)
	ann, bob := s.person(), s.person()
	ann.want(ann.signIn("u1"), "303 /")
	bob.want(bob.signIn("u2"), "303 /")
	for range 10 {
		var work sync.WaitGroup
		for range 6 {
			work.Go(func() { ann.want(ann.get("/"), `operator "oauth:ann@example.com"`) })
		}
		work.Wait()
		time.Sleep(50 * time.Millisecond)
	}
	s.as.SetUser("u1", map[string]any{"email": "ann@example.com", "groups": []string{"dev"}})
	time.Sleep(sharedrecords.Recent)
	for range 2 {
		ann.want(ann.get("/"), `as "oauth:ann@example.com" operator "" may execute true`)
	}
	s.as.Disable("u2")
	time.Sleep(sharedrecords.Recent)
	for range 2 {
		bob.want(bob.get("/"), "303 /login")
	}
}

// TestSharedSessionOutage: a person who is signed in is not sent to the login page while the store does not answer.
func TestSharedSessionOutage(t *testing.T) {
	t.Parallel()
	s := newSharedRealm(t, time.Hour)
	ann := s.person()
	ann.want(ann.signIn("u1"), "303 /")
	s.servers.Kill(t, 0)
	ann.want(ann.get("/"), `operator "oauth:ann@example.com"`)
	s.chosen.Store(1)
	ann.want(ann.get("/"), "503 ")
	s.servers.Start(t, 0)
	testutil.Eventually(t, "the other gateway knows the session", 30*time.Second, func() bool { return ann.get("/")[:3] == fmt.Sprint(http.StatusOK) })
}
