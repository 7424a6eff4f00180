//go:build linux

package isolation_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/isolation"
	"sallyport/gateway/upstream"
	"sallyport/internal/redact"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// edgeToken is a secret that servers must not have. Programs in the sandbox get it reversed, to look for it.
const edgeToken = "S3cret-of-the-edge"

// api is a real host over TLS, which says whether it got the secret.
type api struct {
	mu   sync.Mutex
	seen []string // host, method, path and credentials of each request
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.seen = append(a.seen, fmt.Sprint(r.Host, " ", r.Method, " ", r.URL.Path, " ", r.Header.Values("Authorization")))
	a.mu.Unlock()
	w.Header().Set("X-Echo", r.Header.Get("Authorization"))
	size, err := io.Copy(io.Discard, r.Body)
	if slices.Equal(r.Header.Values("Authorization"), []string{"Bearer " + edgeToken}) && err == nil {
		_, _ = fmt.Fprint(w, "right ", r.Proto, " ", size)
	}
}

// got returns what the host has received.
func (a *api) got() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

// serve serves a host at an address of its own, with a certificate for the names.
func (a *api) serve(t *testing.T, address string, names ...string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this user cannot listen on %s: %v", address, err)
	}
	server := httptest.NewUnstartedServer(a)
	_ = server.Listener.Close()
	server.Listener, server.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
	tlstest.StartAs(t, server, names...)
	t.Cleanup(server.Close)
}

// edgePrelude are further helpers of the code that the hostile server runs. It trusts what its sandbox does.
const edgePrelude = prelude + `
def send(text, sni="api.test"):
    with ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", 443), 30), server_hostname=sni) as s:
        s.sendall(text.encode())
        data = b""
        while more := s.recv(4096): data += more
    return data.decode()
end = "\r\nConnection: close\r\n\r\n"
`

// TestHeader has hostile servers look for a secret that the gateway puts into their requests, and misuse it.
func TestHeader(t *testing.T) {
	testutil.TAP(t)
	t.Setenv("EDGE_TOKEN", edgeToken)
	var good, wrong api
	good.serve(t, "127.0.0.83:443", "api.test")
	wrong.serve(t, "127.0.0.84:443", "other.test")
	launcher := launcherWith(t, isolation.Options{Lookup: zone(map[string]string{"api.test": "127.0.0.83", "wrong.test": "127.0.0.84", "inside.test": "127.0.0.83"})})
	const header = `header: {Authorization: "Bearer ${EDGE_TOKEN}"}}`
	settings := hostile(t, "  hosts: [{name: inside.test, "+header+"]\n  private_hosts:\n    - {name: api.test, "+header+"\n    - {name: wrong.test, "+header)
	up := parse(t, settings)
	if secrets := redact.Values(up.Isolate.PrivateHosts[0].Header); !slices.Contains(secrets, edgeToken) {
		t.Errorf("the secrets are %q", secrets)
	}
	s := open(t, launcher, up)
	for _, test := range []struct{ name, code, want string }{
		{"the host gets it", "answer = urllib.request.urlopen('https://api.test/x', timeout=30).read().decode()", "right HTTP/2.0 0"},
		{"in place of its own", "answer = send('GET / HTTP/1.1\\r\\nHost: api.test\\r\\nAUTHORIZATION: mine\\r\\nauthorization: again\\r\\nConnection: close, authorization\\r\\n\\r\\n')", "right HTTP/2.0"},
		{"an echo", "answer = urllib.request.urlopen('https://api.test/x', timeout=30).headers['X-Echo']", "[secret]"},
		{"a body", "answer = urllib.request.urlopen('https://api.test/x', data=b'x' * 3000000, timeout=30).read().decode()", "right HTTP/2.0 3000000"},
		{"another Host", "answer = send('GET / HTTP/1.1\\r\\nHost: other.test' + end)", "421 .*names another host"},
		{"an absolute target", "answer = send('GET https://other.test/ HTTP/1.1\\r\\nHost: api.test' + end)", "421 .*names another host"},
		{"a trace", "answer = send('TRACE / HTTP/1.1\\r\\nHost: api.test' + end)", "421 .*TRACE"},
		{"another Host, later", "answer = send('GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: other.test' + end)", "right .*421 "},
		{"a hidden request", "answer = send('POST / HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 50\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: other.test' + end)", "right "},
		{"another name", "answer = send('', sni='other.test')", "SSL|EOF|ConnectionReset"},
		{"no TLS", "s = socket.create_connection(('api.test', 443), 30)\ns.sendall(b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')\nanswer = s.recv(100).hex()", "^$|1503|ConnectionReset"},
		{"a host without its certificate", "answer = urllib.request.urlopen('https://wrong.test/', timeout=30)", "HTTP Error 502"},
		{"a host of this machine", "answer = urllib.request.urlopen('https://inside.test/', timeout=30)", "HTTP Error 502"},
		{"other authorities", "context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\nanswer = urllib.request.urlopen('https://api.test/', context=context, timeout=30)", "CERTIFICATE_VERIFY_FAILED"},
		{"what the server has", searchCode(edgeToken), "[found 0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.ReplaceAll(text(run(t, s, edgePrelude+test.code)), "\r\n", " "); !matches(test.want, got) {
				t.Errorf("%q, want %s", got, test.want)
			}
		})
	}
	for _, seen := range good.got() {
		if !strings.HasPrefix(seen, "api.test ") || strings.Contains(seen, "smuggled") || !strings.HasSuffix(seen, " [Bearer "+edgeToken+"]") {
			t.Errorf("the host got %q", seen)
		}
	}
	if got := wrong.got(); len(got) > 0 {
		t.Errorf("a host with another certificate got %q", got)
	}
	for _, line := range []string{
		"api.test:443: the HTTP request names another host", "api.test:443: the method TRACE, TRACK or CONNECT would show or evade the header", "api.test:443: the TLS handshake names another host", "api.test:443: a host with header is for TLS only",
		"wrong.test:443: the certificate of the host is not valid: it is for another name",
		`inside.test:443: it has an address of a private network or of this machine; to allow it, add to isolate: private_hosts: ["inside.test"]`,
	} {
		logged(t, s, regexp.MustCompile("(?m)^"+regexp.QuoteMeta("sallyport: refused "+line)+"$"))
	}
	logged(t, s, untrusted)
	if stderr := s.State().Stderr; strings.Contains(stderr, edgeToken) {
		t.Error(stderr)
	}
}

// logged waits for a line of the log of an upstream.
func logged(t *testing.T, s *upstream.Session, line *regexp.Regexp) {
	t.Helper()
	testutil.Eventually(t, "a line of the log: "+line.String(), time.Minute, func() bool { return line.MatchString(s.State().Stderr) })
}

// untrusted matches the line of the log about a server that does not trust the certificate: its alert may be lost.
var untrusted = regexp.MustCompile(`(?m)^sallyport: refused api\.test:443: the server (does not trust the gateway's certificate \(|closed the TLS connection without a request, ).*; if it pins certificates, use env in place of header$`)

// searchCode looks for a secret in all that a server can read: variables, arguments, files, and its memory.
func searchCode(secret string) string {
	return `
import os
found, want = 0, "` + reverse(secret) + `"
def count(data):
    return data[::-1].count(want.encode())
for top in ("/proc/1", "/opt", "/home", "/tmp", "/etc", "/run", "/srv", "/var"):
    for folder, _, names in os.walk(top):
        for name in names:
            if name in ("mem", "pagemap", "kmsg") or not os.path.isfile(os.path.join(folder, name)): continue
            try: found += count(open(os.path.join(folder, name), "rb").read(1 << 22))
            except OSError: pass
with open("/proc/self/mem", "rb", 0) as memory:
    for line in open("/proc/self/maps"):
        span, rights = line.split()[:2]
        begin, stop = (int(at, 16) for at in span.split("-"))
        if rights.startswith("rw") and stop - begin < 1 << 26:
            try:
                memory.seek(begin)
                found += count(memory.read(stop - begin))
            except (OSError, ValueError): pass
answer = ["found", found]
`
}

// TestHeaderNode checks that Node.js trusts the authority of its sandbox, over HTTP/1.1 and HTTP/2, and what is said if it does not.
func TestHeaderNode(t *testing.T) {
	testutil.TAP(t)
	t.Setenv("EDGE_TOKEN", edgeToken)
	var good api
	good.serve(t, "127.0.0.85:443", "api.test")
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	launcher := launcherWith(t, isolation.Options{Checkpoints: store, Lookup: zone(map[string]string{"api.test": "127.0.0.85"})})
	s := open(t, launcher, parse(t, "command: node\nargs: ["+dir+"/server.mjs]\nisolate:\n  mounts: [{path: "+dir+"}]\n  private_hosts: [{name: api.test, header: {Authorization: \"Bearer ${EDGE_TOKEN}\"}}]"))
	for _, test := range []struct{ name, code, want string }{
		{"fetch", "const r = await fetch('https://api.test/x', { method: 'POST', body: 'x'.repeat(2000000), headers: { authorization: 'mine' } }); return r.headers.get('x-echo') + await r.text()", "[secret]right HTTP/2.0 2000000"},
		{"again, on the same connection", "return (await fetch('https://api.test/y')).text()", "right HTTP/2.0 0"},
		{"HTTP/2", `const http2 = await import("node:http2"); const c = http2.connect("https://api.test"); const r = c.request({ ":path": "/z", "authorization": "mine" });
			let body = ""; for await (const part of r) body += part; c.close(); return body`, "right HTTP/2.0 0"},
		{"HTTP/2 to another", `const http2 = await import("node:http2"); const c = http2.connect("https://api.test"); const r = c.request({ ":path": "/z", ":authority": "other.test" });
			let body = ""; for await (const part of r) body += part; c.close(); return body`, "the HTTP request names another host"},
		{"other authorities", `const https = await import("node:https"); const tls = await import("node:tls");
			return await new Promise((done, fail) => https.get("https://api.test/", { ca: tls.rootCertificates[0] }, done).on("error", fail))`, "unable to|SELF_SIGNED|self-signed"},
		{"its environment", "return JSON.stringify(process.env).includes([..." + `"` + reverse(edgeToken) + `"` + "].reverse().join('')) || process.env.NODE_EXTRA_CA_CERTS", "/opt/upstream/ca.pem"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := text(run(t, s, test.code)); got != test.want && !matches(test.want, got) {
				t.Errorf("%q, want %s", got, test.want)
			}
		})
	}
	logged(t, s, untrusted)
	if entries, err := os.ReadDir(store); err != nil || len(entries) > 0 {
		t.Errorf("a server with secrets at the edge has a checkpoint: %v, %v", entries, err)
	}
	for _, seen := range good.got() {
		if !strings.HasPrefix(seen, "api.test ") || !strings.HasSuffix(seen, " [Bearer "+edgeToken+"]") {
			t.Errorf("the host got %q", seen)
		}
	}
}

func reverse(text string) string {
	all := bytes.Clone([]byte(text))
	slices.Reverse(all)
	return string(all)
}
