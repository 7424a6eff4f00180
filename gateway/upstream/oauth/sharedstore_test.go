package oauth_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/seal"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/natscluster"
)

// machines are gateways, each with a folder of its own, that share a store and a key.
type machines struct {
	*world

	c   *natscluster.Cluster
	key *seal.Key
}

func newMachines(t *testing.T, as *authserver.Options) *machines {
	t.Helper()
	return &machines{newWorld(t, as, nil), natscluster.Start(t, 1), newSeal(t)}
}

func newSeal(t *testing.T) *seal.Key {
	t.Helper()
	key, err := seal.New([]byte(rand.Text() + rand.Text())[:seal.Size])
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// machine is one gateway.
type machine struct {
	world   *world
	dir     string
	in      *store.Store
	records *sharedrecords.Records
}

func (w *machines) machine() *machine {
	w.t.Helper()
	in, err := store.Connect(store.Remote{Server: w.c.Server(w.t.Name()), Seal: w.key, Logger: testutil.Logger(w.t)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = in.Close() })
	records, err := sharedrecords.OpenSealed(in, "logins", store.Limits{Records: 100, Keep: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return &machine{w.world, filepath.Join(w.t.TempDir(), "auth"), in, records}
}

func (m *machine) options() *oauth.Options {
	return &oauth.Options{Dir: m.dir, Logger: testutil.Logger(m.world.t), Now: m.world.now, Records: func() (oauth.Records, error) { return m.records, nil }}
}

func (m *machine) settings() oauth.Settings {
	s := m.world.settings()
	s.Store = "auto"
	return s
}

func (m *machine) handler() *oauth.Handler { return oauth.New(m.settings(), m.options()) }

func (m *machine) token() string {
	m.world.t.Helper()
	token, err := m.handler().Token(m.world.t.Context())
	if err != nil {
		m.world.t.Error(err)
	}
	return token
}

// stored returns all records of logins as the servers have them.
func (m *machine) stored() (all []byte) {
	m.world.t.Helper()
	bucket, err := m.in.Bucket(store.PrivatePrefix+"logins", store.Limits{Records: 100, Keep: true})
	if err != nil {
		m.world.t.Fatal(err)
	}
	for e, err := range bucket.List(m.world.t.Context(), nil) {
		if err != nil {
			m.world.t.Fatal(err)
		}
		all = append(all, e.Value...)
	}
	return all
}

// TestSharedLogin: a login at one gateway is one at all, its tokens are refreshed by one at a time, the servers cannot read them, and a
// logout at any is one at all.
func TestSharedLogin(t *testing.T) {
	w := newMachines(t, nil)
	one, two := w.machine(), w.machine()
	w.login(one.handler())
	w.callEcho(two.handler())
	if status, err := two.handler().Status(); err != nil || !status.LoggedIn || status.Store != "store" {
		t.Errorf("%+v, %v", status, err)
	}
	if raw := one.stored(); len(raw) == 0 || bytes.Contains(raw, []byte(*w.rs.Token.Load())) || bytes.Contains(raw, []byte("tickets")) {
		t.Errorf("the servers have %q", raw)
	}
	if files, err := os.ReadDir(one.dir); err == nil && len(files) > 0 {
		t.Errorf("files at the gateway: %v", files)
	}
	w.late.Store(int64(2 * time.Hour)) // a token lives for one
	if tokens := w.together(t, []*oauth.Handler{one.handler(), two.handler(), w.machine().handler(), two.handler()}, 40); len(tokens) != 1 {
		t.Errorf("%d different tokens", len(tokens))
	}
	w.count("refresh_token", 1)
	w.count("reuse", 0)
	w.as.RevokeAccess()
	w.callEcho(two.handler())
	w.callEcho(one.handler())
	w.count("refresh_token", 2)
	w.count("reuse", 0)
	if was, revoked, err := two.handler().Logout(t.Context()); !was || !revoked || err != nil {
		t.Errorf("logout: %v, %v, %v", was, revoked, err)
	}
	time.Sleep(sharedrecords.Recent)
	if status, err := one.handler().Status(); err != nil || status.LoggedIn || one.token() != "" {
		t.Errorf("after the logout at the other: %+v, %v", status, err)
	}
}

// TestSharedLoginsOfPrincipals: logins and API keys of principals are their own at each gateway.
func TestSharedLoginsOfPrincipals(t *testing.T) {
	w := newMachines(t, nil)
	one, two := w.machine(), w.machine()
	key := func(m *machine, principal string) *oauth.Key {
		s := m.settings()
		s.Principal = principal
		return oauth.NewKey(s, "X-Key", m.options())
	}
	if err := key(one, "token:ada").Save(t.Context(), "the-key-of-ada"); err != nil {
		t.Fatal(err)
	}
	from, err := key(two, "token:ada").TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if token, err := from.Token(); err != nil || token.AccessToken != "the-key-of-ada" {
		t.Errorf("%+v, %v", token, err)
	}
	_, err = key(two, "token:bob").TokenSource(t.Context())
	wantLogin(t, err, "it needs an API key")
	if was, _, err := key(two, "token:ada").Logout(t.Context()); !was || err != nil {
		t.Error(was, err)
	}
	time.Sleep(sharedrecords.Recent)
	_, err = key(one, "token:ada").TokenSource(t.Context())
	wantLogin(t, err, "it needs an API key")
}

// TestMoveLogin: a login of one machine is moved to the store once. One that the store has replaces that of a machine, which does not come
// back after a logout.
func TestMoveLogin(t *testing.T) {
	w := newMachines(t, nil)
	one, two := w.machine(), w.machine()
	for _, m := range []*machine{one, two} {
		alone := m.settings()
		alone.Store = "file"
		w.login(oauth.New(alone, &oauth.Options{Dir: m.dir, Now: w.now}))
	}
	first := one.token()
	if first == "" || two.token() != first {
		t.Errorf("tokens %q and %q", first, two.token())
	}
	for _, m := range []*machine{one, two} {
		if found, err := filepath.Glob(filepath.Join(m.dir, "*.json")); err != nil || len(found) > 0 {
			t.Errorf("files of logins: %v, %v", found, err)
		}
	}
	w.callEcho(two.handler())
	if _, _, err := one.handler().Logout(t.Context()); err != nil {
		t.Error(err)
	}
	time.Sleep(sharedrecords.Recent)
	if one.token() != "" || two.token() != "" {
		t.Error("a login is back after the logout")
	}
	local := one.settings()
	local.Store = "file" // the settings say so
	h := oauth.New(local, one.options())
	w.login(h)
	if status, err := h.Status(); err != nil || status.Store != "file" || two.token() != "" {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestSharedLoginOutage: without the store, a token that was used a moment ago is, and neither a refresh nor a login is begun, as its
// result could be lost.
func TestSharedLoginOutage(t *testing.T) {
	w := newMachines(t, nil)
	one, two := w.machine(), w.machine()
	w.login(one.handler())
	known := one.token()
	w.c.Kill(t, 0)
	time.Sleep(sharedrecords.Recent)
	if got := one.token(); got != known {
		t.Errorf("%q, want %q", got, known)
	}
	if _, err := two.handler().Token(t.Context()); err == nil {
		t.Error("it is known without the store that there is no login")
	}
	w.late.Store(int64(2 * time.Hour))
	if token, err := one.handler().Token(t.Context()); err == nil {
		t.Errorf("refreshed without the store: %q", token)
	}
	w.count("refresh_token", 0)
	w.c.Start(t, 0)
	testutil.Eventually(t, "the token is refreshed", 30*time.Second, func() bool {
		token, err := two.handler().Token(t.Context())
		return err == nil && token != "" && token != known
	})
	w.count("refresh_token", 1)
}

// TestSharedLoginDamage: a record of another key or of a newer version is named, and not replaced. A damaged one needs a login.
func TestSharedLoginDamage(t *testing.T) {
	w := newMachines(t, nil)
	one := w.machine()
	w.login(one.handler())
	other := &machines{w.world, w.c, newSeal(t)}
	foreign := other.machine()
	_, err := foreign.handler().Token(t.Context())
	wantText(t, err, "sealed with another key")
	if err := w.tryLogin(foreign.handler(), &authserver.Browser{}); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("a login of another key is replaced: %v", err)
	}
	var name []string
	if err := one.records.List(t.Context(), func(key []string, data []byte) bool {
		name = key
		var all map[string]any
		if err := json.Unmarshal(data, &all); err != nil {
			t.Error(err)
		}
		all["version"] = 2
		changed, err := json.Marshal(all)
		_, revision, err2 := one.records.Get(t.Context(), true, key...)
		ok, err3 := one.records.Put(t.Context(), changed, revision, key...)
		if err := errors.Join(err, err2, err3); !ok || err != nil {
			t.Error(ok, err)
		}
		return false
	}); err != nil {
		t.Fatal(err)
	}
	_, err = one.handler().Token(t.Context())
	wantText(t, err, "newer version")
	bucket, err := one.in.Bucket(store.PrivatePrefix+"logins", store.Limits{Records: 100, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bucket.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	raw.Value[len(raw.Value)-1] ^= 1
	if _, err := bucket.Put(t.Context(), name, raw.Value); err != nil {
		t.Fatal(err)
	}
	time.Sleep(sharedrecords.Recent)
	_, err = one.handler().Token(t.Context())
	wantLogin(t, err, "the stored login is damaged")
	w.login(one.handler())
	if token := one.token(); token == "" || strings.Contains(token, " ") {
		t.Errorf("%q", token)
	}
}
