package main_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/tlstest"
)

// secretRig is a gateway with a secret wherever an operator may put one, before upstreams
// that know all of them and say them in every way. What leaves is kept in out.
type secretRig struct {
	t       *testing.T
	dir     string
	env     []string
	secrets map[string]string // by where they are
	mu      sync.Mutex
	out     map[string]*bytes.Buffer // by what said it
}

// knownFile is the file in which upstreams find all secrets.
func (h *secretRig) knownFile() string { return filepath.Join(h.dir, "own", "known.json") }

func (h *secretRig) list() (all []string) {
	for _, s := range h.secrets {
		all = append(all, s)
	}
	return all
}

// tellUpstreams writes down what upstreams know.
func (h *secretRig) tellUpstreams() {
	data, _ := json.Marshal(h.list())
	h.write("own/known.json", string(data))
}

func (h *secretRig) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// record stores a message.
func (h *secretRig) record(who string, text []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out[who] == nil {
		h.out[who] = &bytes.Buffer{}
	}
	h.out[who].Write(text)
}

func newSecretRig(t *testing.T) *secretRig {
	t.Helper()
	runsc := testutil.Runsc(t)
	dir, err := os.MkdirTemp("/tmp", "hoard-") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &secretRig{t: t, dir: dir, out: map[string]*bytes.Buffer{}, secrets: map[string]string{
		"env": "Env-s3cret/+&one", "arg": "Arg-s3cret=two", "arg-url": "Arg-Url-s3cret-3", "env-url": "Env-Url-s3cret-3b", "header": "Header-s3cret<four>", "query": "Query-s3cret-5",
		"file": "File-s3cret \"six\"", "env_file": "EnvFile-s3cret-7", "unused": "Unused-s3cret-7b", "client": "Client-s3cret-8", "token": "a-token-for-a-test", "embeddings": "Embed-s3cret-10",
		"url-user": "Url-User-s3cret-11", "otlp": "Otlp-s3cret-12", "surrealdb": "Surreal-s3cret-13", "recognizer": "Recognizer-s3cret-14",
	}}
	h.env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join(dir, "run"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_STATE_HOME="+filepath.Join(dir, "own"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "own"), "HOARD_ENV="+h.secrets["env"], "HOARD_ARG="+h.secrets["arg"], "HOARD_QUERY="+url.QueryEscape(h.secrets["query"]), "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere/bus")
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.tellUpstreams()
	h.write("own/secret.txt", h.secrets["file"]+"\n")
	h.write("own/secrets.env", "FILE_HEADER="+h.secrets["header"]+"\nFILE_TOKEN="+h.secrets["env_file"]+"\nOTHER_TOKEN="+h.secrets["unused"]+"\n")
	as := authserver.New(t, &authserver.Options{Clients: []authserver.Client{{ID: "robot", Secret: h.secrets["client"], Service: true}}})
	h.write("upstreams.yaml", h.settings(oauthtest.New(t, as, nil).URL, oauthtest.New(t, as, nil).URL, runsc))
	return h
}

func (h *secretRig) settings(person, robot, runsc string) string {
	over := h.overHTTP()
	host := strings.TrimPrefix(over, "https://")
	return fmt.Sprintf(`env_file: own/secrets.env
trust: allow
upstreams:
  stdio:
    command: leaky
    args: [%[1]q, "--api-key=${HOARD_ARG}", "--db", "postgres://me:%[2]s@db/x"]
    env: {TOKEN: "${HOARD_ENV}", FILE_TOKEN: "${FILE_TOKEN}", DATABASE_URL: "postgres://me:%[3]s@db/x"}
    idle: 1h
  over:
    url: "%[4]s/mcp?api_key=${HOARD_QUERY}"
    headers: {Authorization: "Bearer ${FILE_HEADER}", X-Api-Key: "${file:own/secret.txt}"}
  broken: {url: "%[4]s/broken", headers: {Authorization: "Bearer ${FILE_HEADER}"}}
  dying: {command: leaky, args: [%[1]q, die], env: {TOKEN: "${HOARD_ENV}"}}
  person: {url: %[5]q, auth: {store: file}}
  robot: {url: %[6]q, auth: {type: client_credentials, client_id: robot, client_secret: %[7]q}}
  userinfo: {url: "https://me:%[8]s@%[9]s/mcp"}
search: {embeddings: {url: "%[4]s/embeddings", model: m, headers: {Authorization: "Bearer %[10]s"}}}
privacy: {mode: detect, recognizer: {url: "%[4]s/recognizer", headers: {Authorization: "Bearer %[15]s"}}}
sandbox: {runsc: %[11]q, pool: {max: 0, min: 0}}
http: {tokens: {test: %[12]s}}
audit:
  enabled: true
  code: text
  sinks: {otlp: {url: "%[4]s/otlp", headers: {Authorization: "Bearer %[13]s"}}, surrealdb: {url: "%[4]s/surrealdb", namespace: n, database: d, user: u, password: %[14]q}}
policy: {default: allow, rules: [{tools: [over.ask], then: deny, message: no}]}
profiles: [all]
`, h.knownFile(), h.secrets["arg-url"], h.secrets["env-url"], over, person, robot, h.secrets["client"], h.secrets["url-user"], host, h.secrets["embeddings"],
		runsc, h.secrets["token"], h.secrets["otlp"], h.secrets["surrealdb"], h.secrets["recognizer"])
}

// overHTTP is a leaky server, and one whose errors say the same.
func (h *secretRig) overHTTP() string {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return upstreamtest.Leaky(h.list) }, nil)
	web := tlstest.NewServer(h.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			handler.ServeHTTP(w, r)
			return
		}
		words := fmt.Sprint(r.URL, r.Header)
		if r.URL.Path == "/broken" {
			words += fmt.Sprint(h.list())
		}
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q}}`, words), http.StatusForbidden)
	}))
	h.t.Cleanup(func() { _ = web.Config.Close(); web.Close() })
	return web.URL
}

// run runs the command while the gateway runs, and stores its output.
func (h *secretRig) run(args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "sallyport", args...)
	cmd.Env, cmd.Dir = append(h.env, "SALLYPORT_CONFIG="+filepath.Join(h.dir, "upstreams.yaml")), h.dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		h.t.Fatalf("%v: %v", args, err)
	}
	h.record("sallyport "+strings.Join(args, " "), out)
	return string(out)
}

// wire keeps what comes over HTTP, every byte.
type wire struct {
	h   *secretRig
	who string
}

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := withToken{}.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.h.record(w.who, fmt.Append(nil, resp.Header))
	resp.Body = tapped{resp.Body, w}
	return resp, nil
}

type tapped struct {
	io.ReadCloser
	wire wire
}

func (t tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.wire.h.record(t.wire.who, p[:n])
	return n, err
}

func (h *secretRig) dial(endpoint, version string) *mcp.ClientSession {
	h.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {},
	})
	session, err := client.Connect(h.t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: &http.Client{Transport: wire{h, version + " " + endpoint}}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	return session
}

const pythonLeak = `
import os, sys, glob, json, sallyport
from servers.%[1]s import tell, fail, refuse, ask
for f in (tell, fail, refuse, ask):
    try:
        got = f()
        print(got)
        open("/workspace/%[1]s-" + f.__name__ + ".txt", "w").write(str(got))
    except Exception as e:
        print(repr(e), vars(e))
from servers.%[1]s import resources
for r in resources.list():
    print(r)
    try:
        print(resources.read(r["uri"]))
    except Exception as e:
        print(repr(e))
print(sallyport.search_tools("use it"))
print(dict(os.environ), sys.argv)
seen = 0
for root, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(root, d) not in ("/usr", "/sys", "/lib", "/lib64", "/bin", "/sbin", "/proc")]
    for name in files:
        try:
            print(os.path.join(root, name), open(os.path.join(root, name), errors="replace").read(100_000))
        except OSError:
            pass
for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ") + ["/proc/mounts", "/proc/self/maps"]:
    try:
        print(open(path, errors="replace").read())
    except OSError:
        pass
tell()["nothing"]
`

const typescriptLeak = `
import { tell, fail, refuse } from "servers/%[1]s";
for (const f of [tell, fail, refuse]) {
  try { console.log(JSON.stringify(await f({}))); } catch (e) { console.log(String(e), JSON.stringify(e), (e as any).stack); }
}
console.log(process.env, process.argv);
throw new Error(JSON.stringify(await tell({})));
`

// TestSecretsStayEverywhere puts a secret wherever an operator may put one, has upstreams that
// know all of them say them in every way, and seeks them in every byte that leaves and that is kept.
func TestSecretsStayEverywhere(t *testing.T) {
	h := newSecretRig(t)
	h.run("auth", "login", "person")
	h.learnTokens()
	cmd := exec.Command("sallyport", "serve", "--http", "127.0.0.1:0", "--log-level", "debug")
	cmd.Env, cmd.Dir = append(h.env, "SALLYPORT_CONFIG="+filepath.Join(h.dir, "upstreams.yaml")), h.dir
	address, log := startListening(t, cmd)
	for i, version := range []string{"2025-11-25", "2026-07-28"} {
		h.use(h.dial(address, version), [][]string{{"stdio", "dying"}, {"over", "broken"}}[i])
		h.direct(h.dial(address+"/direct", version))
	}
	h.refusals(address)
	h.processes()
	h.runVerbs()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	h.record("the log", []byte(<-log))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	h.learnTokens()
	h.recordFiles()
	h.checkLeaks()
}

// learnTokens adds what logins have brought, so that upstreams say it and it is sought.
func (h *secretRig) learnTokens() {
	h.t.Helper()
	files, _ := filepath.Glob(filepath.Join(h.dir, "own", "sallyport", "auth", "*"))
	for _, path := range files {
		data, _ := os.ReadFile(path)
		var login struct {
			Secret map[string]string `json:"secret"`
		}
		if json.Unmarshal(data, &login) == nil {
			for name, token := range login.Secret {
				h.secrets["login "+name] = token
			}
		}
	}
	if h.secrets["login access"] == "" || h.secrets["login refresh"] == "" {
		h.t.Fatalf("nobody has logged in: %v", files)
	}
	h.tellUpstreams()
}

// use is what a client does with programs.
func (h *secretRig) use(session *mcp.ClientSession, upstreams []string) {
	h.t.Helper()
	defer session.Close()
	run := func(language, code string) mcp.CallToolParams {
		return mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": code, "language": language}}
	}
	calls := []mcp.CallToolParams{
		{Name: "search_tools"}, {Name: "search_tools", Arguments: map[string]any{"query": "tell", "detail": "full"}}, {Name: "search_tools", Arguments: map[string]any{"query": "Env-s3cret/+&one"}},
		run("typescript", fmt.Sprintf(typescriptLeak, upstreams[0])), run("python", "from servers import person, robot\nprint(person.echo())\nprint(robot.echo())"),
	}
	for _, up := range upstreams {
		calls = append(calls, run("python", fmt.Sprintf(pythonLeak, up)))
	}
	for _, params := range calls {
		_, _ = session.CallTool(h.t.Context(), &params) // the wire keeps what comes
	}
}

// direct is what a client does without programs.
func (h *secretRig) direct(session *mcp.ClientSession) {
	h.t.Helper()
	defer session.Close()
	ctx := h.t.Context()
	_ = session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}) //nolint:staticcheck // upstreams say secrets in logs, too
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		h.t.Error(err)
		return
	}
	for _, one := range tools.Tools {
		if name := one.Name[strings.LastIndex(one.Name, "_")+1:]; name == "tell" || name == "fail" || name == "refuse" || name == "ask" {
			params := &mcp.CallToolParams{Name: one.Name}
			params.SetProgressToken("p" + one.Name)
			_, _ = session.CallTool(ctx, params)
		}
	}
	if list, err := session.ListResources(ctx, nil); err == nil {
		for _, r := range list.Resources {
			_, _ = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.URI})
		}
	}
	if list, err := session.ListPrompts(ctx, nil); err == nil {
		for _, p := range list.Prompts {
			_, _ = session.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name})
		}
	}
}

// refusals are answers to those who may not, or do not know how.
func (h *secretRig) refusals(address string) {
	h.t.Helper()
	for _, token := range []string{"", "Bearer wrong", "Bearer " + h.secrets["token"]} {
		for _, path := range []string{"", "/direct", "/../", "/../api/executions", "/../.well-known/oauth-protected-resource"} {
			req, _ := http.NewRequestWithContext(h.t.Context(), http.MethodPost, address+path, strings.NewReader("{"))
			req.Header.Set("Authorization", token)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				h.record("a refusal", fmt.Append(body, resp.Header))
			}
		}
	}
}

// processes are those of the gateway but for what it starts for upstreams: whoever puts a secret
// into an argument shows it to the machine. Their environments are private, but sandboxes have none to keep.
func (h *secretRig) processes() {
	for _, path := range processesWith(h.dir) {
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if bytes.HasPrefix(line, []byte("leaky")) || bytes.Contains(line, []byte("/leaky\x00")) {
			continue
		}
		h.record("a process title", line)
		if bytes.Contains(line, []byte("runsc")) {
			environ, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
			h.record("the environment of a sandbox's process", environ)
		}
	}
}

// runVerbs is what a person does.
func (h *secretRig) runVerbs() {
	for _, args := range [][]string{
		{"doctor", "--log-level", "debug"}, {"tools", "--json"},
		{"generate", "--out", filepath.Join(h.dir, "generated")}, {"log"}, {"log", "verify"}, {"approvals"},
		{"backup", filepath.Join(h.dir, "backup.tar.gz")},
	} {
		h.run(args...)
	}
}

// recordFiles are all files that are there now, but for those that are the operator's or logins.
func (h *secretRig) recordFiles() {
	files := 0
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(h.dir, "upstreams.yaml"):
			return nil
		case d.IsDir():
			if path == filepath.Join(h.dir, "own") {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		data, _ := os.ReadFile(path)
		name := strings.TrimPrefix(path, h.dir)
		h.record("the file "+name, append([]byte(name), data...))
		if strings.HasSuffix(path, ".gz") {
			h.record("unpacked "+name, unpack(data))
		}
		files++
		return nil
	})
	if files < 20 || err != nil {
		h.t.Errorf("only %d files are kept, %v", files, err)
	}
}

// unpack is what a compressed file holds, of an archive all members.
func unpack(data []byte) []byte {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(zip)
	var all bytes.Buffer
	all.Write(plain)
	for archive := tar.NewReader(bytes.NewReader(plain)); ; {
		head, err := archive.Next()
		if err != nil {
			return all.Bytes()
		}
		if member, _ := io.ReadAll(archive); strings.HasSuffix(head.Name, ".gz") {
			all.Write(unpack(member))
		}
	}
}

// checkLeaks looks for every secret in all that was said.
func (h *secretRig) checkLeaks() {
	total, hidden := 0, 0
	for who, out := range h.out {
		text := out.String()
		total += len(text)
		hidden += strings.Count(text, "[hidden]")
		for where, s := range h.secrets {
			for _, form := range []string{s, s[1 : len(s)-1], url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s), hex.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte("user:" + s))[8:20], base64.URLEncoding.EncodeToString([]byte("a" + s))[4:16]} {
				if at := strings.Index(text, form); at >= 0 {
					h.t.Errorf("%s shows the secret of %s: …%q", who, where, text[max(0, at-80):min(len(text), at+80)])
					break
				}
			}
		}
	}
	h.t.Logf("%d bytes by %d sources, %d secrets hidden", total, len(h.out), hidden)
	if hidden < 1000 {
		h.t.Error("nobody has said much")
	}
	all := h.out["the log"].String()
	for who, out := range h.out {
		if strings.Contains(who, "http") {
			all += out.String()
		}
	}
	for _, said := range []string{"KeyError: 'nothing'", "Error: {", "echo was here", "dying is not available", "broken is not available", "elicitation/create", "notifications/message", "notifications/progress"} {
		if !strings.Contains(all, said) {
			h.t.Errorf("nobody said %q", said)
		}
	}
}
