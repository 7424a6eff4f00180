package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/browser"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/webhook"
)

// teamSecret signs the alerts of a team.
const teamSecret = "a-secret-of-the-pager-for-tests"

// teamSite is two gateways that share a store, the provider where people sign in, an upstream where each person has a login, and a
// receiver of alerts.
type teamSite struct {
	one, two *teamGateway
	provider *authserver.Server
	tickets  *oauthtest.Resource
	pager    *pager
	chromium *browser.Browser
	pages    []*browser.Page
}

// teamGateway is a gateway with a data directory of its own.
type teamGateway struct {
	dir, url string
	cmd      *exec.Cmd
	log      <-chan string
}

func newTeamSite(t *testing.T) *teamSite {
	t.Helper()
	s := &teamSite{pager: newPager(t), chromium: browser.Open(t), tickets: oauthtest.New(t, authserver.New(t, nil), nil)}
	s.provider = authserver.New(t, &authserver.Options{OpenID: true, Clients: []authserver.Client{{ID: "gw", Secret: "secret-of-the-gateway", RedirectURIs: []string{"http://127.0.0.1/login/callback"}}}})
	for name, groups := range teamGroups {
		s.provider.SetUser(name, map[string]any{"groups": groups})
	}
	servers := natscluster.Start(t, 1)
	text := fmt.Sprintf(teamSettings, s.tickets.URL, testutil.Runsc(t), servers.URL(), servers.Creds, servers.CA, s.pager.url, teamSecret, s.provider.URL)
	s.one, s.two = newTeamGateway(t, text), newTeamGateway(t, text)
	return s
}

// teamGroups are the groups of each person at the provider.
var teamGroups = map[string][]string{"alice": {"users", "finance"}, "bob": {"users"}, "olga": {"ops"}}

const teamSettings = `
upstreams:
  tickets: {url: %q, auth: {per: principal, store: file}}
  toy: {command: toyserver, args: [pay, say]}
sandbox: {runsc: %q, pool: {max: 0, min: 0}}
store: {url: %q, creds: %q, tls: {ca: %q}, replicas: 1}
skills: {scope: shared, review: false}
policy: {default: allow, rules: [{name: payments, tools: [toy.pay], then: ask}]}
budgets: [{name: small, principals: ["oauth:alice"], calls: 12}]
alerts: [{name: pager, url: %q, secret: %q, on: [approval, budget]}]
http:
  login: {issuer: %[8]q, client_id: gw, client_secret: secret-of-the-gateway, scopes: [openid, offline_access]}
  oauth: {issuer: %[8]q, audience: "https://team.example/mcp"}
  identity: {groups: claims.groups, roles: {user: '"users" in groups', operator: '"ops" in groups'}}
`

func newTeamGateway(t *testing.T, settings string) *teamGateway {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "team-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "upstreams.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &teamGateway{dir: dir}
	g.cmd = g.command("serve", "--http", "127.0.0.1:0")
	g.url, g.log = startListening(t, g.cmd)
	if g.url == "" {
		t.Fatalf("the gateway does not listen:\n%s", <-g.log)
	}
	g.url = strings.TrimSuffix(g.url, "/mcp")
	return g
}

// command is a command of sallyport on the machine of the gateway.
func (g *teamGateway) command(args ...string) *exec.Cmd {
	cmd := exec.Command("sallyport", append(args, "--config", filepath.Join(g.dir, "upstreams.yaml"))...)
	cmd.Env = append(os.Environ(), "TMPDIR="+g.dir, "XDG_RUNTIME_DIR="+g.dir, "XDG_CACHE_HOME="+g.dir, "XDG_DATA_HOME="+g.dir, "XDG_STATE_HOME="+g.dir, "XDG_CONFIG_HOME="+g.dir)
	return cmd
}

// stop ends the gateway, and checks that its log has no secret.
func (g *teamGateway) stop(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if all := <-g.log; strings.Contains(all, "eyJ") || strings.Contains(all, "secret-of") || strings.Contains(all, "level=ERROR") {
		t.Errorf("the log:\n%s", all)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// member is one of the team, with a token of the provider for MCP clients.
type member struct {
	name, token string
}

func (s *teamSite) member(t *testing.T, name string, groups ...string) member {
	t.Helper()
	now := time.Now()
	return member{name, s.provider.Sign(t, map[string]any{
		"iss": s.provider.URL, "sub": name, "aud": []string{"https://team.example/mcp"}, "client_id": "npm", "groups": groups,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": name,
	})}
}

// ask sends a request to the API of a gateway.
func (p member) ask(t *testing.T, g *teamGateway, method, path, body string) (status int, text string) {
	t.Helper()
	got := testutil.Request(t, method, g.url+path, body, "Authorization: Bearer "+p.token)
	return got.Status, string(got.Body)
}

// get reads JSON from the API of a gateway.
func (p member) get(t *testing.T, g *teamGateway, path string, into any) {
	t.Helper()
	if status, text := p.ask(t, g, http.MethodGet, "/api"+path, ""); status != http.StatusOK || json.Unmarshal([]byte(text), into) != nil {
		t.Fatalf("%s gets %s: %d %s", p.name, path, status, text)
	}
}

// browses signs a person in with a browser of its own, at a page.
func (s *teamSite) browses(t *testing.T, name, page string) *browser.Page {
	t.Helper()
	p := s.chromium.Page(t)
	s.pages = append(s.pages, p)
	p.Go(page)
	p.Follow("main a.button.primary")
	p.Fill("input[name=user]", name)
	p.Follow("button[value=allow]")
	if p.WaitText("body", "oauth:"+name); p.URL() != page {
		t.Errorf("%s is at %s, not %s", name, p.URL(), page)
	}
	p.Complaints() // the provider has no icon
	return p
}

// npmClient is an MCP client of npm in a process.
type npmClient struct {
	t       *testing.T
	in      io.Writer
	opened  chan string // pages that it opens
	session string      // id of its MCP session

	mu      sync.Mutex
	answers map[int]chan string
}

// connects starts a client of a kind that testdata/team/client.mjs knows.
func (p member) connects(t *testing.T, kind string, g *teamGateway) *npmClient {
	t.Helper()
	modules, dir := testutil.Clients(t), t.TempDir()
	program, err := os.ReadFile(filepath.Join("testdata", "team", "client.mjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), program, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testutil.Program(t, "node"), filepath.Join(dir, "client.mjs"), kind, g.url+"/mcp")
	cmd.Env, cmd.Stderr = append(os.Environ(), "SALLYPORT_TOKEN="+p.token), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &npmClient{t: t, in: in, opened: make(chan string, 9), answers: map[int]chan string{}}
	began, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		c.read(out, began)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-ended
		_ = cmd.Wait()
	})
	var ok bool
	if c.session, ok = <-began; !ok {
		t.Fatalf("the %s client of %s does not connect", kind, p.name)
	}
	return c
}

// read reads what the client says, until it ends.
func (c *npmClient) read(out io.Reader, began chan<- string) {
	defer close(began)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var said struct {
			Session    *string
			Open, Text string
			ID         int
		}
		switch err := json.Unmarshal(lines.Bytes(), &said); {
		case err != nil:
		case said.Session != nil:
			began <- *said.Session
		case said.Open != "":
			c.opened <- said.Open
		default:
			c.mu.Lock()
			c.answers[said.ID] <- said.Text
			c.mu.Unlock()
		}
	}
}

// begin calls a tool, and sends its answer later.
func (c *npmClient) begin(name string, args map[string]any) <-chan string {
	c.t.Helper()
	answer := make(chan string, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	id := len(c.answers) + 1
	c.answers[id] = answer
	line, err := json.Marshal(map[string]any{"id": id, "tool": name, "args": args})
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// runs runs a program, with pairs of more arguments.
func (c *npmClient) runs(code string, more ...string) string {
	c.t.Helper()
	args := map[string]any{"code": code}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return c.wait(c.begin("execute_code", args))
}

// searches returns what the model reads of a search.
func (c *npmClient) searches(query string) string {
	c.t.Helper()
	return c.wait(c.begin("search_tools", map[string]any{"query": query}))
}

func (c *npmClient) wait(answer <-chan string) string {
	c.t.Helper()
	select {
	case text := <-answer:
		return text
	case <-time.After(time.Minute):
		c.t.Fatal("the client has no answer")
	}
	return ""
}

// pager receives alerts, and accepts those that are signed.
type pager struct {
	url string

	mu     sync.Mutex
	alerts []string
}

func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = webhook.Verify(teamSecret, r.Header, body, time.Now())
		}
		if err != nil {
			t.Errorf("an alert that is not signed: %v", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		p.mu.Lock()
		p.alerts = append(p.alerts, string(body))
		p.mu.Unlock()
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// gets waits for an alert of a type that has all of these texts.
func (p *pager) gets(t *testing.T, kind string, texts ...string) (alert string) {
	t.Helper()
	await(t, "the pager gets "+kind, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, alert = range p.alerts {
			if strings.Contains(alert, `"type":"`+kind+`"`) {
				return true
			}
		}
		return false
	})
	for _, text := range texts {
		if !strings.Contains(alert, text) {
			t.Errorf("the alert %s has no %q", alert, text)
		}
	}
	return alert
}
