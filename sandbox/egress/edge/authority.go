package edge

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// lifetime is that of the certificates. Only one sandbox trusts them, and their keys are in memory until it ends.
const lifetime = 10 * 365 * 24 * time.Hour

// Authority is the certificate authority of one sandbox, with one certificate for each of its hosts. Its keys are never
// written. It is safe for concurrent use.
type Authority struct {
	pem    []byte
	leaves map[string]*tls.Certificate
}

// NewAuthority returns an authority for hosts of these names only.
func NewAuthority(names []string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	root, err := template("Sallyport, for one sandbox")
	if err != nil {
		return nil, err
	}
	root.IsCA, root.BasicConstraintsValid, root.MaxPathLenZero, root.KeyUsage = true, true, true, x509.KeyUsageCertSign
	root.PermittedDNSDomains, root.PermittedDNSDomainsCritical = names, true
	root.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	if root, err = x509.ParseCertificate(der); err != nil { // it has the identifier of its key now
		return nil, fmt.Errorf("make certificate authority: %w", err)
	}
	a := &Authority{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), leaves: map[string]*tls.Certificate{}}
	for _, name := range names {
		if a.leaves[name], err = issue(name, root, key); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return slices.Clone(a.pem) }

// issue returns a certificate for a host.
func issue(name string, root *x509.Certificate, signer *ecdsa.PrivateKey) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	leaf, err := template("")
	if err != nil {
		return nil, err
	}
	leaf.DNSNames, leaf.KeyUsage, leaf.ExtKeyUsage = []string{name}, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("make certificate for %s: %w", name, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
	}, nil
}
