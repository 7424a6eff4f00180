// Package tlstest has servers for tests that stand for services reached over https: with a certificate authority of the test
// binary's own, so that a client that does not verify, or is not told the authority, fails.
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
)

// authority is a certificate authority, and a certificate that it has given to this machine.
type authority struct {
	pem  []byte
	leaf tls.Certificate
}

var made = sync.OnceValues(newAuthority)

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
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return a, err
	}
	leaf := template("localhost")
	leaf.SerialNumber, leaf.KeyUsage = big.NewInt(2), x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames, leaf.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &own.PublicKey, key)
	if err != nil {
		return a, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	a.leaf = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
	return a, nil
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func mustMake(t testing.TB) authority {
	t.Helper()
	a, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// NewServer serves over TLS until the test ends. Its URL names localhost, as programs verify names and not addresses.
func NewServer(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{mustMake(t).leaf}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	server.URL = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	t.Cleanup(server.Close)
	return server
}

// Authority returns a file with the authority of the servers, after those that this machine trusts.
func Authority(t testing.TB) string {
	t.Helper()
	system, _ := os.ReadFile("/etc/ssl/certs/ca-certificates.crt") // not every machine has it there
	if named := os.Getenv("SSL_CERT_FILE"); named != "" {
		if data, err := os.ReadFile(named); err == nil {
			system = data
		}
	}
	path := filepath.Join(t.TempDir(), "authorities.pem")
	if err := os.WriteFile(path, append(append(system, '\n'), mustMake(t).pem...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
