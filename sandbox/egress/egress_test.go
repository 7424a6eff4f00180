package egress

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/net/dns/dnsmessage"
)

// hello returns the first message of a TLS client.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() { _ = tls.Client(client, config).Handshake(); _ = client.Close() }()
	buf := make([]byte, 16<<10)
	n, err := server.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	return buf[:n]
}

// TestInspect checks first messages, whole and byte by byte; what was read is passed on unchanged.
func TestInspect(t *testing.T) {
	t.Parallel()
	right, wrong := hello(t, &tls.Config{ServerName: "api.test"}), hello(t, &tls.Config{ServerName: "evil.test"})
	none := hello(t, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a client without a name
	ech := bytes.Clone(right)                               // a name of an extension that this client sends, in place of ECH's
	if i := bytes.Index(ech, []byte{0x00, 0x17, 0x00, 0x00}); i > 0 {
		ech[i], ech[i+1] = 0xfe, 0x0d
	}
	for _, test := range []struct {
		name, first string
		port        uint16
		want        string
	}{
		{"TLS", string(right), 443, ""},
		{"TLS on another port", string(right), 8443, ""},
		{"TLS to another", string(wrong), 443, ReasonSNI},
		{"TLS to another, another port", string(wrong), 8443, ReasonSNI},
		{"TLS without a name", string(none), 443, ReasonSNI},
		{"TLS with a hidden name", string(ech), 443, ReasonECH},
		{"half a handshake", string(right[:50]), 443, ReasonTLS},
		{"no handshake", "\x16\x03\x01\xff\xff" + strings.Repeat("x", 70_000), 443, ReasonTLS},
		{"SSH on port 443", "SSH-2.0-x\r\n", 443, ReasonTLS},
		{"HTTP on port 443", "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", 443, ReasonTLS},
		{"HTTP", "POST /x HTTP/1.1\r\nhOst: API.test.:80\r\n\r\nbody", 80, ""},
		{"HTTP, bare newlines", "GET / HTTP/1.1\nHost: api.test\n\n", 80, ""},
		{"HTTP to another", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", 80, ReasonHost},
		{"HTTP without a host", "GET / HTTP/1.0\r\n\r\n", 80, ReasonHost},
		{"two hosts", "GET / HTTP/1.1\r\nHost: api.test\r\nHost : evil.test\r\n\r\n", 80, ReasonHost},
		{"an absolute target", "GET http://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n", 80, ReasonHost},
		{"a proxy", "CONNECT evil.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", 80, ReasonHost},
		{"a request without end", "GET / HTTP/1.1\r\nHost: api.test\r\n" + strings.Repeat("X: y\r\n", 20_000), 80, ReasonHost},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 80, ReasonH2C},
		{"another protocol", "\x00\x00\x00\x08\x04\xd2\x16\x2f", 5432, ""},
		{"a word", "GETALL x\r\n", 6379, ""},
		{"nothing", "", 443, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, from := range []io.Reader{strings.NewReader(test.first), iotest.OneByteReader(strings.NewReader(test.first))} {
				read, reason := inspect(from, "api.test", test.port)
				if reason != test.want || !strings.HasPrefix(test.first, string(read)) {
					t.Errorf("reason %q, want %q; read %d of %d bytes", reason, test.want, len(read), len(test.first))
				}
			}
		})
	}
}

// TestRules checks which names and ports rules allow.
func TestRules(t *testing.T) {
	t.Parallel()
	var allowed policy
	for _, text := range []string{"api.test", "*.Wild.test:8443"} {
		rule, err := ParseRule(text, false)
		if err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, rule)
	}
	for name, want := range map[string][2]bool{
		"api.test": {true, false}, "x.api.test": {}, "api.test.evil.test": {}, "a.wild.test": {false, true}, "a.b.wild.test": {false, true}, "wild.test": {}, "evilwild.test": {}, "": {}, ".wild.test": {},
	} {
		for i, port := range []uint16{443, 8443} {
			if _, ok := allowed.find(name, port); ok != want[i] {
				t.Errorf("%q on %d: %v", name, port, ok)
			}
		}
	}
	for _, text := range []string{"", ":443", "a:0", "a:65536", "a:b", "a:1:2"} {
		if rule, err := ParseRule(text, false); err == nil {
			t.Errorf("%q is %+v", text, rule)
		}
	}
}

// FuzzInspect checks that no first message that passes on port 443 is anything but a handshake with the name.
func FuzzInspect(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "api.test"}))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"))
	f.Fuzz(func(t *testing.T, first []byte) {
		read, reason := inspect(bytes.NewReader(first), "api.test", 443)
		if !bytes.HasPrefix(first, read) || reason == "" && len(first) > 0 && (first[0] != tlsHandshake || !bytes.Contains(bytes.ToLower(first), []byte("api.test"))) {
			t.Errorf("%q passes", first)
		}
		if read, _ := inspect(bytes.NewReader(first), "api.test", 80); !bytes.HasPrefix(first, read) {
			t.Errorf("%q was changed", first)
		}
	})
}

// FuzzAnswer checks that only allowed names get an address, and that answers are valid messages.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"api.test.", "evil.test.", "a.wild.test."} {
		query := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
		packed, err := query.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	allowed := policy{{Name: "api.test", Port: 443}, {Name: "*.wild.test", Port: 443}}
	f.Fuzz(func(t *testing.T, query []byte) {
		names := newBook()
		reply := answer(query, allowed, names, func(r Refusal) {
			if allowed.names(r.Host) {
				t.Errorf("%q is refused", r.Host)
			}
		})
		if reply == nil {
			return
		}
		var message dnsmessage.Message
		if err := message.Unpack(reply); err != nil || len(message.Questions) != 1 {
			t.Fatalf("%v: %x", err, reply)
		}
		name := strings.ToLower(strings.TrimSuffix(message.Questions[0].Name.String(), "."))
		if len(message.Answers) > 0 && !allowed.names(name) || len(message.Answers) > 1 {
			t.Errorf("%q has %v", name, message.Answers)
		}
	})
}
