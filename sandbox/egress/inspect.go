package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// maxHello bounds what is read of a client before its first message is complete.
	maxHello = 64 << 10
	// helloTimeout bounds the time for that.
	helloTimeout = 10 * time.Second
	// extensionECH is the TLS extension encrypted_client_hello.
	extensionECH = 0xfe0d
	httpsPort    = 443
	tlsHandshake = 0x16
)

// methods are the starts of HTTP requests, and of an HTTP/2 connection.
var methods = []string{"GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS ", "CONNECT ", "TRACE ", "PRI "}

// inspect reads the first message of a client and checks that it names the host. It returns what was read, which the host must
// get, and the reason of a refusal, "" for none. Any protocol but TLS and HTTP passes, except on port 443.
func inspect(client io.Reader, name string, port uint16) (read []byte, reason string) {
	var seen bytes.Buffer
	tee := io.TeeReader(io.LimitReader(client, maxHello), &seen)
	first := readStart(tee)
	switch rest := io.MultiReader(bytes.NewReader(first), tee); {
	case len(first) == 0:
	case first[0] == tlsHandshake:
		reason = checkHello(rest, name)
	case port == httpsPort:
		reason = ReasonTLS
	case mayBeHTTP(first):
		reason = checkRequest(rest, name)
	}
	return seen.Bytes(), reason
}

// readStart reads as much as tells the protocol.
func readStart(from io.Reader) []byte {
	first := make([]byte, len("OPTIONS "))
	n := 0
	for n < len(first) && (n == 0 || first[0] != tlsHandshake && mayBeHTTP(first[:n])) {
		more, err := from.Read(first[n:])
		if n += more; err != nil {
			break
		}
	}
	return first[:n]
}

// checkHello checks the server name of a TLS handshake.
func checkHello(from io.Reader, name string) string {
	reason := ReasonTLS
	_ = tls.Server(helloConn{from}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			switch {
			case slices.Contains(hello.Extensions, extensionECH):
				reason = ReasonECH
			case !strings.EqualFold(strings.TrimSuffix(hello.ServerName, "."), name):
				reason = ReasonSNI
			default:
				reason = ""
			}
			return nil, errHello
		},
	}).HandshakeContext(context.Background()) // always fails; its time is bounded by the reader
	return reason
}

var errHello = errors.New("the client hello was read")

// helloConn is a connection of which only the client's first message is read.
type helloConn struct{ io.Reader }

func (helloConn) Write(p []byte) (int, error)      { return len(p), nil }
func (helloConn) Close() error                     { return nil }
func (helloConn) LocalAddr() net.Addr              { return nil }
func (helloConn) RemoteAddr() net.Addr             { return nil }
func (helloConn) SetDeadline(time.Time) error      { return nil }
func (helloConn) SetReadDeadline(time.Time) error  { return nil }
func (helloConn) SetWriteDeadline(time.Time) error { return nil }

// mayBeHTTP reports whether the start of a message is that of an HTTP request. A start that is too short to tell counts.
func mayBeHTTP(start []byte) bool {
	return slices.ContainsFunc(methods, func(method string) bool {
		n := min(len(method), len(start))
		return method[:n] == string(start[:n])
	})
}

// checkRequest checks the host in the head of an HTTP/1 request: of its target, if that is absolute, and of its only Host field.
func checkRequest(from io.Reader, name string) string {
	head, ok := readHead(from)
	if !ok {
		return ReasonHost
	}
	lines := strings.Split(head, "\n")
	method, rest, _ := strings.Cut(strings.TrimSuffix(lines[0], "\r"), " ")
	target, _, _ := strings.Cut(rest, " ")
	if method == "PRI" {
		return ReasonH2C
	}
	hosts := []string{}
	if _, after, absolute := strings.Cut(target, "://"); absolute && !strings.HasPrefix(target, "/") {
		authority, _, _ := strings.Cut(after, "/")
		hosts = append(hosts, authority)
	}
	if method == "CONNECT" {
		hosts = append(hosts, target)
	}
	fields := 0
	for _, line := range lines[1:] {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
		if strings.EqualFold(strings.TrimSpace(field), "host") {
			hosts, fields = append(hosts, strings.TrimSpace(value)), fields+1
		}
	}
	if fields != 1 || slices.ContainsFunc(hosts, func(host string) bool { return !sameHost(host, name) }) {
		return ReasonHost
	}
	return ""
}

// readHead reads up to the empty line after the fields of a request.
func readHead(from io.Reader) (string, bool) {
	var head []byte
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		head = append(head, buf[:n]...)
		for _, end := range []string{"\r\n\r\n", "\n\n"} {
			if i := bytes.Index(head, []byte(end)); i >= 0 {
				return string(head[:i]), true
			}
		}
		if err != nil {
			return "", false
		}
	}
}

// sameHost reports whether the host of a request, with an optional port, is a name.
func sameHost(host, name string) bool {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), name)
}
