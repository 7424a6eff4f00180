// Package tlstest has TLS servers that replace https services in tests: with the test binary's own certificate
// authority, so that a client that does not verify, or does not trust the authority, fails.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/filelock"
)

// authority is a certificate authority, and a certificate that it issued for this machine.
type authority struct {
	pem  []byte
	root *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf tls.Certificate
}

var sharedAuthority = sync.OnceValues(newAuthority)

func newAuthority() (a authority, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return a, err
	}
	ca := template("authority of tests")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	signed, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		return a, err
	}
	a = authority{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), root: ca, key: key}
	a.leaf, err = a.issue([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback})
	return a, err
}

// issue returns a certificate for names and addresses.
func (a authority) issue(names []string, addresses []net.IP) (tls.Certificate, error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf := template(names[0])
	leaf.SerialNumber, leaf.KeyUsage = big.NewInt(2), x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames, leaf.IPAddresses = names, addresses
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.root, &own.PublicKey, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}, err
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func mustMake(t testing.TB) authority {
	t.Helper()
	a, err := sharedAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// NewServer serves over TLS until the test ends, with HTTP/2 if the client supports it. Its URL names localhost, as
// programs verify names and not addresses.
func NewServer(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	Start(t, server)
	t.Cleanup(server.Close)
	return server
}

// Start starts a server as [NewServer] does. The caller closes it.
func Start(t testing.TB, server *httptest.Server) {
	t.Helper()
	start(t, server, mustMake(t).leaf, "h2", "http/1.1")
}

// StartAs is Start for a server of other names than localhost.
func StartAs(t testing.TB, server *httptest.Server, names ...string) {
	t.Helper()
	leaf, err := mustMake(t).issue(names, nil)
	if err != nil {
		t.Fatal(err)
	}
	start(t, server, leaf, "h2", "http/1.1")
}

// StartHTTP1 is Start for servers with HTTP/1.1 only, such as those whose handlers hijack a connection.
func StartHTTP1(t testing.TB, server *httptest.Server) {
	t.Helper()
	start(t, server, mustMake(t).leaf, "http/1.1")
}

func start(t testing.TB, server *httptest.Server, leaf tls.Certificate, protocols ...string) {
	t.Helper()
	server.TLS = &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12, NextProtos: protocols}
	server.EnableHTTP2 = protocols[0] == "h2"
	server.StartTLS()
	server.URL = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

// Listen listens over TLS for a protocol other than HTTP until the test ends, and returns its HOST:PORT as well.
func Listen(t testing.TB) (listener net.Listener, address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{mustMake(t).leaf}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, strings.Replace(listener.Addr().String(), "127.0.0.1", "localhost", 1)
}

// Certificate returns the certificate of the servers, for one that does TLS itself.
func Certificate(t testing.TB) tls.Certificate {
	t.Helper()
	return mustMake(t).leaf
}

// M wraps [testing.M] in a TestMain: this process, and its children, trust the authority of the servers by
// SSL_CERT_FILE, as a user configures a company's authority.
type M struct{ Tests interface{ Run() int } }

// Run runs the tests and returns the exit code.
func (m M) Run() int {
	a, err := sharedAuthority()
	if err != nil {
		panic(err)
	}
	removeAbandoned(time.Now().Add(-time.Hour))
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	unlock, err := filelock.Dir(dir, 0)
	if err != nil {
		panic(err)
	}
	defer unlock()
	path := filepath.Join(dir, "authorities.pem")
	if err := os.WriteFile(path, a.withSystem(), 0o600); err != nil {
		panic(err)
	}
	if err := os.Setenv("SSL_CERT_FILE", path); err != nil {
		panic(err)
	}
	return m.Tests.Run()
}

// prefix is how the folder of an authority's certificate begins.
const prefix = "authority-"

// removeAbandoned removes the folders, older than a time, of tests that were killed: nobody holds their locks.
func removeAbandoned(before time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || info.ModTime().After(before) {
			continue
		}
		if unlock, err := filelock.Dir(dir, 0); err == nil {
			_ = os.RemoveAll(dir)
			unlock()
		}
	}
}

// withSystem returns the authority appended to the system's trusted ones.
func (a authority) withSystem() []byte {
	system, _ := os.ReadFile("/etc/ssl/certs/ca-certificates.crt") // may not exist
	if named := os.Getenv("SSL_CERT_FILE"); named != "" {
		if data, err := os.ReadFile(named); err == nil {
			system = data
		}
	}
	return append(append(system, '\n'), a.pem...)
}

// Authority returns a file with the system's trusted authorities and that of the servers.
func Authority(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authorities.pem")
	if err := os.WriteFile(path, mustMake(t).withSystem(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
