package connections_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/auditor"
	"sallyport/gateway/connections"
	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(tlstest.M{Tests: m}.Run())
}

// site is the address of the gateway's pages, which this test plays itself.
const site = "http://127.0.0.1:9"

// house is a gateway before an upstream where each principal has a login of its own.
type house struct {
	t   *testing.T
	g   *gateway.Gateway
	as  *authserver.Server
	rs  *oauthtest.Resource
	dir string
	// subjects has the tokens of principals; nil for none.
	subjects *access.Subjects
	// logins are those that several houses share; nil for none.
	logins *sharedrecords.Records
}

func newHouse(t *testing.T, wait string) *house {
	t.Helper()
	h := &house{t: t, as: authserver.New(t, nil)}
	h.rs = oauthtest.New(t, h.as, nil)
	h.open("upstreams:\n  tickets: {url: "+h.rs.URL+", auth: {per: principal, store: file}}\n  open: {url: "+h.rs.URL+"}\napproval: {wait: "+wait+"}\n", &gateway.Options{})
	return h
}

// open opens the gateway, with the logins of principals added to opts.
func (h *house) open(settings string, opts *gateway.Options) {
	h.t.Helper()
	h.dir = h.t.TempDir()
	file := filepath.Join(h.dir, "upstreams.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		h.t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	opts.DataDir, opts.Logger, opts.Site, opts.PeerRequests, opts.PersonAuth = filepath.Join(h.dir, "data"), testutil.Logger(h.t), site, true, h.authorizer
	if h.g, err = gateway.Open(cfg, opts); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := h.g.Close(); err != nil {
			h.t.Error(err)
		}
	})
}

// authorizer returns the login of a principal, of "" the one that all share.
func (h *house) authorizer(up config.Upstream, principal string) oauth.Authorizer {
	settings := oauth.Settings{ID: up.ID, URL: up.URL, Store: "file", Principal: principal, LoginPage: connections.Page(site, up.ID)}
	if e := up.Auth.Exchange; e != nil && principal != "" {
		settings.Exchange = &oauth.Exchange{Exchange: *e, Subject: func(issuer, kind string) (access.Subject, bool) { return h.subjects.Get(principal, issuer, kind) }}
	}
	opts := &oauth.Options{Dir: filepath.Join(h.dir, "auth")}
	if h.logins != nil {
		settings.Store, opts.Records = "auto", func() (oauth.Records, error) { return h.logins, nil }
	}
	if up.Auth.Type == config.AuthKey {
		return oauth.NewKey(settings, up.Auth.Header, opts)
	}
	return oauth.New(settings, opts)
}

// as returns the context of a principal.
func (h *house) of(who string) context.Context { return tool.WithPrincipal(h.t.Context(), who) }

// begin returns the page where a login goes on.
func (h *house) begin(ctx context.Context) string {
	h.t.Helper()
	state, err := h.g.Connections.Connect(ctx, "tickets", connections.How{})
	if err != nil {
		h.t.Fatal(err)
	}
	page, ok := h.g.Connections.Started(ctx, state)
	if !ok {
		h.t.Fatal("the login that has begun is not known")
	}
	return page
}

// consent is the browser of a user until it is sent back, and returns the parameters of the redirect.
func (h *house) consent(user, page string) url.Values {
	h.t.Helper()
	b := authserver.Browser{User: user, Stop: true}
	if err := b.Open(h.t.Context(), page); err != nil {
		h.t.Fatal(err)
	}
	back, err := url.Parse(b.Back)
	if err != nil || !strings.HasPrefix(b.Back, site+connections.CallbackPath+"?") {
		h.t.Fatalf("sent back to %s, %v", b.Back, err)
	}
	return back.Query()
}

// login logs a principal in as a user.
func (h *house) login(who, user string) {
	h.t.Helper()
	if id, err := h.g.Connections.Finish(h.of(who), h.consent(user, h.begin(h.of(who)))); err != nil || id != "tickets" {
		h.t.Fatalf("%s: %q, %v", who, id, err)
	}
}

func (h *house) call(ctx context.Context, name string) (string, error) {
	result, err := h.g.Call(ctx, tool.Call{Tool: tool.ID{Upstream: "tickets", Name: name}, Args: []byte(`{}`)})
	return result.Text(), err
}

// is wants the upstream to see a principal as a user.
func (h *house) is(who, user string) {
	h.t.Helper()
	if got, err := h.call(h.of(who), "whoami"); err != nil || got != user {
		h.t.Errorf("%s calls as %q, %v, want %s", who, got, err, user)
	}
}

// connected reports whether a principal has a login.
func (h *house) connected(ctx context.Context) bool {
	h.t.Helper()
	one, err := h.g.Connections.Connection(ctx, "tickets")
	if err != nil {
		h.t.Fatal(err)
	}
	return one.LoggedIn
}

// TestEachHasItsOwnLogin: the calls of principals have tokens of their own, also at the same time, and one that ends its login
// leaves the others theirs.
func TestEachHasItsOwnLogin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "20s")
	h.login("token:ada", "ada")
	h.login("token:bob", "bob")
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { h.is("token:ada", "ada") })
		calls.Go(func() { h.is("token:bob", "bob") })
	}
	calls.Wait()
	if err := h.g.Connections.Disconnect(h.of("token:ada"), "tickets"); err != nil {
		t.Fatal(err)
	}
	if h.connected(h.of("token:ada")) || !h.connected(h.of("token:bob")) {
		t.Error("the wrong login has ended")
	}
	h.is("token:bob", "bob")
	h.login("token:ada", "eve") // another account of the same person
	h.is("token:ada", "eve")
	if h.connected(tool.WithOperator(t.Context(), "op")) {
		t.Error("a principal's login is the one that all share")
	}
	h.audited("upstream.login token:ada", "upstream.login token:bob", "upstream.logout token:ada", "upstream.login token:ada")
}

// audited wants just these events about logins in the audit log.
func (h *house) audited(want ...string) {
	h.t.Helper()
	page, err := h.g.Auditor.AuditLog(tool.WithOperator(h.t.Context(), "op"), auditor.Filter{Kind: "upstream.*"})
	if err != nil {
		h.t.Fatal(err)
	}
	var got []string
	for _, e := range page.Events {
		got = append([]string{string(e.Kind) + " " + e.Principal}, got...)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		h.t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNewTools: a tool that the upstream adds is known once the principal whose tools are shown has connected again.
func TestNewTools(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "20s")
	h.login("token:ada", "ada")
	h.is("token:ada", "ada")
	h.rs.AddTool("extra")
	if err := h.g.Connections.Disconnect(h.of("token:ada"), "tickets"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { // without a login, so that it connects again
		_, err := h.call(h.of("token:ada"), "whoami")
		answered <- err
	}()
	time.Sleep(100 * time.Millisecond) // the call waits meanwhile, or will
	h.login("token:ada", "ada")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if got, err := h.call(h.of("token:ada"), "extra"); err != nil || got != "extra was here" {
		t.Errorf("%q, %v", got, err)
	}
}

// peer is a client that is asked to open a page.
type peer struct {
	open func(page string) (action string)

	mu        sync.Mutex
	asked     []string
	completed []string
}

// Ask implements [tool.Peer].
func (p *peer) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	var q struct{ Mode, URL, Message, ElicitationID string }
	if err := json.Unmarshal(params, &q); err != nil || method != "elicitation/create" || q.Mode != "url" || q.Message == "" {
		return nil, fmt.Errorf("asked %s %s", method, params)
	}
	p.mu.Lock()
	p.asked = append(p.asked, q.ElicitationID)
	p.mu.Unlock()
	return json.Marshal(map[string]string{"action": p.open(q.URL)})
}

// Notify implements [tool.Peer].
func (p *peer) Notify(method string, params json.RawMessage) {
	var of struct{ ElicitationID string }
	if json.Unmarshal(params, &of) == nil && method == "notifications/elicitation/complete" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.completed = append(p.completed, of.ElicitationID)
	}
}

// TestClientOpensPage: the client of five calls is asked once to open the page of the login, all of them wait for it, and it is told when that is complete; one
// that declines gets an error at once, with the page.
func TestClientOpensPage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "0s")
	h.login("token:bob", "bob")
	h.is("token:bob", "bob")
	var logins sync.WaitGroup
	defer logins.Wait()
	p := &peer{open: func(page string) string {
		if page != site+"/ui/connections/tickets" {
			t.Errorf("opens %s", page)
		}
		logins.Go(func() { h.login("token:ada", "ada") })
		return "accept"
	}}
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			c := tool.Call{Tool: tool.ID{Upstream: "tickets", Name: "note"}, Args: []byte(`{}`), Peer: p}
			if result, err := h.g.Call(h.of("token:ada"), c); err != nil || result.IsError {
				t.Errorf("%s, %v", result.Text(), err)
			}
		})
	}
	calls.Wait()
	if n := h.rs.Notes.Load(); n != 5 {
		t.Errorf("%d calls were made, want 5", n)
	}
	p.mu.Lock()
	if len(p.asked) != 1 || !slices.Equal(p.asked, p.completed) {
		t.Errorf("asked %q, complete %q", p.asked, p.completed)
	}
	p.mu.Unlock()
	no := &peer{open: func(string) string { return "decline" }}
	_, err := h.g.Call(h.of("token:eve"), tool.Call{Tool: tool.ID{Upstream: "tickets", Name: "note"}, Args: []byte(`{}`), Peer: no})
	want := "the user declined to log in to tickets (ask the user to log in at " + site + "/ui/connections/tickets, then make the call again)"
	if e := tool.AsError(err); e.Kind != tool.Denied || e.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestCallWaitsForLogin: a call without a login asks the client to open the page, waits, and is made once.
func TestCallWaitsForLogin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "20s")
	h.login("token:bob", "bob") // the tools are known
	h.is("token:bob", "bob")
	ctx := h.of("token:ada")
	answered := make(chan error, 1)
	go func() {
		got, err := h.call(ctx, "note")
		if err == nil && got != "1" {
			err = errors.New("it was made as call " + got)
		}
		answered <- err
	}()
	time.Sleep(100 * time.Millisecond) // it waits meanwhile, or will
	h.login("token:ada", "ada")
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if n := h.rs.Notes.Load(); n != 1 {
		t.Errorf("%d calls were made", n)
	}
}

// TestForeignLogin: nobody can end a login that another began, use its state, or log in for all without being an operator.
func TestForeignLogin(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "20s")
	got := h.consent("eve", h.begin(h.of("token:eve")))
	for who, ctx := range map[string]context.Context{"bob": h.of("token:bob"), "nobody": t.Context(), "an operator": tool.WithOperator(t.Context(), "op")} {
		if _, err := h.g.Connections.Finish(ctx, got); tool.AsError(err).Kind != tool.Invalid {
			t.Errorf("%s ends the login of eve: %v", who, err)
		}
		if _, ok := h.g.Connections.Started(ctx, got.Get("state")); ok {
			t.Errorf("%s sees the login of eve", who)
		}
	}
	if h.connected(h.of("token:bob")) {
		t.Error("bob has the login of eve")
	}
	if _, err := h.g.Connections.Finish(h.of("token:eve"), got); err != nil {
		t.Errorf("her own: %v", err)
	}
	if _, err := h.g.Connections.Finish(h.of("token:eve"), got); tool.AsError(err).Kind != tool.Invalid {
		t.Errorf("a login is ended twice: %v", err)
	}
	if _, err := h.g.Connections.Connect(h.of("token:bob"), "open", connections.How{}); tool.AsError(err).Kind != tool.Denied {
		t.Errorf("bob logs in for all: %v", err)
	}
	for range 20 {
		_, err := h.g.Connections.Connect(h.of("token:eve"), "tickets", connections.How{})
		if err == nil {
			continue
		}
		if tool.AsError(err).Kind != tool.Limit {
			t.Errorf("many logins: %v", err)
		}
		return
	}
	t.Error("one principal begins any number of logins")
}
