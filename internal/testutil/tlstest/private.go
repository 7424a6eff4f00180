package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Private is an authority that this process does not trust, such as that of a company's services.
type Private struct {
	// CA is a file with its certificate, Pool has it too.
	CA   string
	Pool *x509.CertPool
	// Server is a certificate for this machine.
	Server tls.Certificate

	own authority
	dir string
}

// NewPrivate makes an authority.
func NewPrivate(t testing.TB) *Private {
	t.Helper()
	own, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	p := &Private{Pool: x509.NewCertPool(), Server: own.leaf, own: own, dir: t.TempDir()}
	p.Pool.AppendCertsFromPEM(own.pem)
	p.CA = filepath.Join(p.dir, "ca.pem")
	if err := os.WriteFile(p.CA, own.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// Client writes the certificate of a client with a serial number and its key, which replace those of the last call, and returns
// their files. It is valid until the end of a time.
func (p *Private) Client(t testing.TB, serial int64, until time.Time) (cert, key string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := template("client")
	leaf.SerialNumber, leaf.NotAfter, leaf.KeyUsage = big.NewInt(serial), until, x509.KeyUsageDigitalSignature
	leaf.NotBefore, leaf.ExtKeyUsage = until.Add(-24*time.Hour), []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, leaf, p.own.root, &own.PublicKey, p.own.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(p.dir, "client.pem"), filepath.Join(p.dir, "client.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
