//nolint:staticcheck // logging is deprecated, and still to be passed on
package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/session"
	"sallyport/internal/config"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// balancer is an HTTP client that sends all requests to one gateway of several, as a load balancer does, with a token.
type balancer struct {
	token string
	mu    sync.Mutex
	to    *url.URL
	cut   chan struct{} // is closed with the connections to the gateway
}

// use sends further requests to a gateway, and cuts the connections to the one before.
func (b *balancer) use(t *testing.T, origin string) {
	t.Helper()
	to, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cut != nil {
		close(b.cut)
	}
	b.to, b.cut = to, make(chan struct{})
}

// RoundTrip implements [http.RoundTripper].
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	to, cut := b.to, b.cut
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	r = r.Clone(ctx)
	r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// gatewayPair has two gateways with the same upstream that share the sessions of their clients.
type gatewayPair struct {
	servers *natscluster.Cluster
	faces   [2]*direct
	origins [2]string
}

func newGatewayPair(t *testing.T, up *talker) *gatewayPair {
	t.Helper()
	p := &gatewayPair{servers: natscluster.Start(t, 1)}
	settings := config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: config.Secrets{"ada": "s3cret", "eve": "0ther"}}
	for i := range p.faces {
		sessions, err := session.Open(storetest.Connect(t, p.servers.Server("")))
		if err != nil {
			t.Fatal(err)
		}
		p.faces[i] = newDirect(t, false, upstream("talker", up.url, ""))
		p.origins[i] = serve(t, p.faces[i].face, &siteOptions{Settings: settings, Sessions: sessions})
	}
	return p
}

// connect connects a client of an older revision to a gateway, through a balancer.
func (p *gatewayPair) connect(t *testing.T, at int, opts *mcp.ClientOptions) (*mcp.ClientSession, *balancer) {
	t.Helper()
	lb := &balancer{token: "s3cret"}
	lb.use(t, p.origins[at])
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: p.origins[at] + "/mcp", HTTPClient: &http.Client{Transport: lb}}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // most tests have closed it
	return c, lb
}

// tellUpdates returns a handler that sends the resources that were updated, as far as there is room.
func tellUpdates(told chan<- string) func(context.Context, *mcp.ResourceUpdatedNotificationRequest) {
	return func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
		select {
		case told <- req.Params.URI:
		default:
		}
	}
}

// update makes an upstream tell of a change until a client is told.
func update(t *testing.T, up *talker, told <-chan string) {
	t.Helper()
	testutil.Eventually(t, "the client is told of updates", time.Minute, func() bool {
		if err := up.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "doc://1"}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-told:
			return got == "doc://1"
		case <-time.After(time.Second):
			return false
		}
	})
}

// TestSessionAtAnotherGateway: a client of an older revision does not notice that another gateway serves it: its log level, its
// subscriptions and its stream of notifications are as before.
func TestSessionAtAnotherGateway(t *testing.T) {
	t.Parallel()
	up := newTalker(t, false)
	p := newGatewayPair(t, up)
	told, said := make(chan string, 99), make(chan string, 99)
	c, lb := p.connect(t, 0, &mcp.ClientOptions{
		ResourceUpdatedHandler: tellUpdates(told),
		LoggingMessageHandler:  func(_ context.Context, req *mcp.LoggingMessageRequest) { said <- string(req.Params.Level) },
	})
	if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "warning"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "doc://1"}); err != nil {
		t.Fatal(err)
	}
	soon(t, "the upstream hears of the subscription", up.subscribed)
	before, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}

	lb.use(t, p.origins[1])
	p.faces[0].face.Close()
	after, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(before)
	if b, _ := json.Marshal(after); string(a) != string(b) {
		t.Errorf("the tools were %s, and are %s", a, b)
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "talker__speak"}); err != nil {
		t.Fatal(err)
	}
	if level := soon(t, "the client gets a log message", said); level != "warning" || len(said) > 0 {
		t.Errorf("a message of level %s, and %d more", level, len(said))
	}
	update(t, up, told)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "the session has ended at both", time.Minute, func() bool {
		answer, _ := request(t, "POST", p.origins[1]+"/mcp", listBody, "Authorization: Bearer s3cret", "Mcp-Session-Id: "+c.ID())
		return answer.StatusCode == http.StatusNotFound
	})
}

const listBody = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`

// TestChangesOfSessions: what a client has set in its session is stored before the client is answered, as its next request may arrive at
// another gateway.
func TestChangesOfSessions(t *testing.T) {
	t.Parallel()
	p := newGatewayPair(t, newTalker(t, false))
	sessions, err := session.Open(storetest.Connect(t, p.servers.Server("")))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := p.connect(t, 0, nil)
	slowly := func(change func() error) (session.Record, bool) {
		p.servers.Signal(t, 0, syscall.SIGSTOP)
		defer time.AfterFunc(time.Second, func() { p.servers.Signal(t, 0, syscall.SIGCONT) }).Stop()
		changed := change()
		record, ok, err := sessions.Load(t.Context(), "", c.ID())
		if changed != nil || err != nil {
			t.Fatal(changed, err)
		}
		return record, ok
	}
	if record, ok := slowly(func() error { return c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "doc://1"}) }); !ok || len(record.Subscribed) != 1 {
		t.Errorf("subscribed: %t %+v", ok, record)
	}
	if record, ok := slowly(func() error { return c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "warning"}) }); !ok || record.Level != "warning" {
		t.Errorf("a level is set: %t %+v", ok, record)
	}
	theirs, _ := request(t, "POST", p.origins[0]+"/mcp", `{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"doc://1"}}`, "Authorization: Bearer 0ther", "Mcp-Session-Id: "+c.ID())
	if record, ok, err := sessions.Load(t.Context(), "", c.ID()); theirs.StatusCode != http.StatusNotFound || !ok || len(record.Subscribed) != 1 || err != nil {
		t.Errorf("another principal changes the session: %d %t %+v %v", theirs.StatusCode, ok, record, err)
	}
	if record, ok := slowly(c.Close); ok {
		t.Errorf("closed: %+v", record)
	}
}

// TestSessionStoredLater: a session that began while the servers did not answer is known to other gateways when they do.
func TestSessionStoredLater(t *testing.T) {
	t.Parallel()
	p := newGatewayPair(t, newTalker(t, false))
	good := "Authorization: Bearer s3cret"
	p.servers.Signal(t, 0, syscall.SIGSTOP)
	opened, _ := request(t, "POST", p.origins[0]+"/mcp", initializeBody, good)
	p.servers.Signal(t, 0, syscall.SIGCONT)
	id := "Mcp-Session-Id: " + opened.Header.Get("Mcp-Session-Id")
	testutil.Eventually(t, "the other gateway serves it", time.Minute, func() bool {
		answer, _ := request(t, "POST", p.origins[1]+"/mcp", listBody, good, id)
		return answer.StatusCode == http.StatusOK
	})
}

// TestStreamElsewhere: a client gets what happened since another gateway serves its session, though its last event has a number of the
// gateway before.
func TestStreamElsewhere(t *testing.T) {
	t.Parallel()
	up := newTalker(t, false)
	p := newGatewayPair(t, up)
	good := "Authorization: Bearer s3cret"
	opened, _ := request(t, "POST", p.origins[0]+"/mcp", initializeBody, good)
	id := opened.Header.Get("Mcp-Session-Id")
	request(t, "POST", p.origins[0]+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"doc://1"}}`, good, "Mcp-Session-Id: "+id)
	request(t, "POST", p.origins[1]+"/mcp", listBody, good, "Mcp-Session-Id: "+id)
	told := make(chan string, 99)
	witness, _ := p.connect(t, 1, &mcp.ClientOptions{ResourceUpdatedHandler: tellUpdates(told)})
	if err := witness.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "doc://1"}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // after the second update, the first one is in both streams
		update(t, up, told)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.origins[1]+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer s3cret"}, "Accept": {"text/event-stream"}, "Mcp-Session-Id": {id}, "Last-Event-Id": {"_7"}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "notifications/resources/updated") {
			return
		}
	}
	t.Errorf("no update arrives: %s", answer.Status)
}

// TestSessionsOfOthersElsewhere: another gateway serves a session to its principal only, opens it once for requests at the same time,
// and does not wait for servers that are down.
func TestSessionsOfOthersElsewhere(t *testing.T) {
	t.Parallel()
	p := newGatewayPair(t, newTalker(t, false))
	good, other := "Authorization: Bearer s3cret", "Authorization: Bearer 0ther"
	opened, _ := request(t, "POST", p.origins[0]+"/mcp", initializeBody, good)
	id := "Mcp-Session-Id: " + opened.Header.Get("Mcp-Session-Id")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		theirs, said := request(t, method, p.origins[1]+"/mcp", listBody, id, other)
		none, saidOfNone := request(t, method, p.origins[1]+"/mcp", listBody, "Mcp-Session-Id: d-NONE", other)
		if theirs.StatusCode != http.StatusNotFound || none.StatusCode != http.StatusNotFound || said != saidOfNone || theirs.Header.Get("Content-Type") != none.Header.Get("Content-Type") {
			t.Errorf("%s: another's session: %d %q, none: %d %q", method, theirs.StatusCode, said, none.StatusCode, saidOfNone)
		}
	}
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			list := strings.Replace(listBody, `"id":2`, fmt.Sprintf(`"id":%d`, 100+i), 1)
			if answer, body := request(t, "POST", p.origins[1]+"/mcp", list, id, good); answer.StatusCode != http.StatusOK || !strings.Contains(body, "talker__speak") {
				t.Errorf("%d %s", answer.StatusCode, body)
			}
		})
	}
	work.Wait()
	again, _ := request(t, "POST", p.origins[0]+"/mcp", initializeBody, good) // IDs are not mixed up
	if next := again.Header.Get("Mcp-Session-Id"); next == "" || "Mcp-Session-Id: "+next == id {
		t.Errorf("another session is %q", next)
	}
	p.servers.Kill(t, 0)
	if answer, _ := request(t, "POST", p.origins[1]+"/mcp", listBody, id, good); answer.StatusCode != http.StatusOK {
		t.Errorf("what is open here needs no store: %d", answer.StatusCode)
	}
	if answer, _ := request(t, "POST", p.origins[1]+"/mcp", listBody, "Mcp-Session-Id: d-NONE", good); answer.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown session without the store: %d", answer.StatusCode)
	}
	if answer, _ := request(t, "POST", p.origins[1]+"/mcp", initializeBody, good); answer.StatusCode != http.StatusOK {
		t.Errorf("a new session without the store: %d", answer.StatusCode)
	}
}
