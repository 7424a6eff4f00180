package access_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/seal"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tool"
)

// gateways have sessions in one store.
type gateways struct {
	c   *natscluster.Cluster
	key *seal.Key
}

func newGateways(t *testing.T) gateways {
	t.Helper()
	key, err := seal.New([]byte(rand.Text() + rand.Text())[:seal.Size])
	if err != nil {
		t.Fatal(err)
	}
	return gateways{natscluster.Start(t, 1), key}
}

// start returns the sessions and tokens of one gateway, which ends with the test or with stop.
func (g gateways) start(t *testing.T, p access.Provider) (s *access.Sessions, place access.Place, stop func()) {
	t.Helper()
	in, err := store.Connect(store.Remote{Server: g.c.Server(t.Name()), Seal: g.key, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = in.Close() }
	t.Cleanup(stop)
	made, err := sharedrecords.Open(in, "tokens", store.Limits{Records: 10, Keep: true})
	sealed, err2 := sharedrecords.OpenSealed(in, "sessions", store.Limits{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	place = access.InRecords(made)
	s = access.NewSharedSessions(access.OpenTokens(place, nil), sealed, testutil.Logger(t))
	s.Use(p)
	return s, place, stop
}

func lookUp(t *testing.T, s *access.Sessions, cookie string) (access.Caller, bool) {
	t.Helper()
	v, ok, err := s.Lookup(t.Context(), cookie)
	if err != nil {
		t.Error(err)
	}
	return v, ok
}

// TestSharedSessions: a session that is opened at one gateway is known to all, also after that one has ended, until it is closed at any of
// them or its token is revoked.
func TestSharedSessions(t *testing.T) {
	g := newGateways(t)
	one, place, stop := g.start(t, nil)
	two, _, _ := g.start(t, nil)
	ctx := t.Context()
	_, made, err := access.Create(ctx, place, access.TokenSpec{Name: "ann", Scopes: []tool.Scope{tool.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	v := access.Caller{Principal: "token:ann", Scopes: []tool.Scope{tool.ScopeRead}, Token: made.ID, Rate: access.Rate{Count: 7, Per: time.Minute}}
	cookies := []string{}
	for range 2 {
		cookies = append(cookies, openSession(t, one, v))
	}
	code, ok := one.Redeem(one.NewCode())
	if !ok {
		t.Fatal("a code is refused")
	}
	local := openSession(t, one, code)
	if _, ok := lookUp(t, one, local); !ok {
		t.Error("the session of a code is unknown")
	}
	if _, ok := lookUp(t, two, local); ok {
		t.Error("the owner of one gateway is that of another")
	}
	if _, ok := lookUp(t, two, cookies[0]+"x"); ok {
		t.Error("a wrong cookie is known")
	}
	stop()
	for _, cookie := range cookies {
		if got, ok := lookUp(t, two, cookie); !ok || got.Principal != v.Principal || got.By != access.BySession || !got.May(tool.ScopeRead) || got.May(tool.ScopeExecute) || got.Rate != v.Rate {
			t.Errorf("%+v, %v", got, ok)
		}
	}
	three, _, _ := g.start(t, nil)
	if _, ok := lookUp(t, three, cookies[0]); !ok {
		t.Error("a session is unknown at a new gateway")
	}
	if _, err := two.Close(ctx, cookies[0]); err != nil {
		t.Error(err)
	}
	if _, ok := lookUp(t, two, cookies[0]); ok {
		t.Error("a closed session goes on")
	}
	time.Sleep(sharedrecords.Recent)
	if _, ok := lookUp(t, three, cookies[0]); ok {
		t.Error("a session that is closed at one gateway goes on at another")
	}
	if _, ok := lookUp(t, three, cookies[1]); !ok {
		t.Error("another session is closed")
	}
	_, fourth, _ := g.start(t, nil)
	if err := access.Revoke(ctx, fourth, "ann"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(sharedrecords.Recent)
	if _, ok := lookUp(t, three, cookies[1]); ok {
		t.Error("a session outlives its token")
	}
}

// rotating is a provider whose refresh tokens are valid once, as state.
type rotating struct {
	mu     sync.Mutex
	t      *testing.T
	uses   map[string]int
	issued int
	down   bool
	ended  []string
}

func (p *rotating) Renew(_ context.Context, state []byte) (access.Caller, []byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return access.Caller{}, nil, errors.New("the provider is down")
	}
	if p.uses[string(state)]++; p.uses[string(state)] > 1 {
		p.t.Errorf("the refresh token %s is used twice", state)
		return access.Caller{}, nil, access.ErrEnded
	}
	p.issued++
	return access.Caller{Principal: "oauth:ann", Groups: []string{strconv.Itoa(p.issued)}}, fmt.Append(nil, p.issued), nil
}

func (p *rotating) End(_ context.Context, state []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, string(state))
}

// TestSharedRenewal: requests at several gateways renew a session one at a time, so that no refresh token is used twice, and all see the
// new groups. A provider that is down ends no session. A logout anywhere ends the newest state.
func TestSharedRenewal(t *testing.T) {
	g := newGateways(t)
	p := &rotating{t: t, uses: map[string]int{}}
	one, _, _ := g.start(t, p)
	two, _, _ := g.start(t, p)
	const every = 400 * time.Millisecond
	cookie, err := one.OpenRenewed(t.Context(), access.Caller{Principal: "oauth:ann"}, &access.Renewal{Every: every, State: []byte("first"), Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); time.Sleep(every / 2) {
		var work sync.WaitGroup
		for i := range 12 {
			work.Go(func() {
				if v, ok := lookUp(t, []*access.Sessions{one, two}[i%2], cookie); !ok || v.Principal != "oauth:ann" || v.Expires.IsZero() {
					t.Errorf("%+v, %v", v, ok)
				}
			})
		}
		work.Wait()
	}
	p.mu.Lock()
	renewed := p.issued
	p.down = true
	p.mu.Unlock()
	if renewed < 3 || renewed > 12 {
		t.Errorf("renewed %d times", renewed)
	}
	time.Sleep(sharedrecords.Recent + every)
	if _, ok := lookUp(t, two, cookie); ok {
		t.Error("a request is served though its groups are not known")
	}
	p.mu.Lock()
	p.down = false
	p.mu.Unlock()
	testutil.Eventually(t, "the session goes on", 20*time.Second, func() bool {
		v, ok := lookUp(t, one, cookie)
		return ok && strings.Join(v.Groups, "") == strconv.Itoa(renewed+1)
	})
	if signedIn, err := two.Close(t.Context(), cookie); !signedIn || err != nil {
		t.Errorf("%v, %v", signedIn, err)
	}
	time.Sleep(sharedrecords.Recent)
	if _, ok := lookUp(t, one, cookie); ok || len(p.ended) != 1 || p.ended[0] != strconv.Itoa(p.issued) {
		t.Errorf("after the logout: %v, ended %q of %d", ok, p.ended, p.issued)
	}
}

// TestSharedSessionsOutage: without the store, sessions that were known a moment ago go on, and it is told of others, of new ones and of a
// logout that the store does not answer.
func TestSharedSessionsOutage(t *testing.T) {
	g := newGateways(t)
	one, _, _ := g.start(t, nil)
	two, _, _ := g.start(t, nil)
	ctx := t.Context()
	cookie, err := one.Open(ctx, access.Caller{Principal: "token:settings"})
	if err != nil {
		t.Fatal(err)
	}
	g.c.Kill(t, 0)
	time.Sleep(sharedrecords.Recent)
	if _, ok := lookUp(t, one, cookie); !ok {
		t.Error("a known session ends with the store")
	}
	if _, ok, err := two.Lookup(ctx, cookie); ok || !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("an unknown session: %v, %v", ok, err)
	}
	if _, err := two.Open(ctx, access.Caller{}); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("opened without the store: %v", err)
	}
	if _, err := one.Close(ctx, cookie); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("closed without the store: %v", err)
	}
	g.c.Start(t, 0)
	testutil.Eventually(t, "the other gateway knows the session", 30*time.Second, func() bool {
		_, ok, _ := two.Lookup(ctx, cookie)
		return ok
	})
}
