package natscluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// secrets are what the servers need.
type secrets struct {
	cert, key        string
	operator, system string
	accounts         []string // entries of resolver_preload
}

// writeSecrets writes certificates and credentials.
func (c *Cluster) writeSecrets() (s secrets, err error) {
	s.cert, s.key = filepath.Join(c.dir, "server.pem"), filepath.Join(c.dir, "server.key")
	c.CA, c.OtherCA = filepath.Join(c.dir, "ca.pem"), filepath.Join(c.dir, "other.pem")
	for _, path := range []string{c.OtherCA, c.CA} { // the certificate of the servers is of the last
		if err := c.writeCertificates(path, s.cert, s.key); err != nil {
			return s, err
		}
	}
	return s, c.writeCredentials(&s)
}

// addresses returns the addresses that the certificate of the servers is for.
func (c *Cluster) addresses() (all []net.IP) {
	for _, n := range c.nodes {
		all = append(all, net.ParseIP(n.place.IP()))
	}
	return all
}

// writeCertificates writes an authority, and a certificate that it signed.
func (c *Cluster) writeCertificates(ca, cert, key string) error {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority " + filepath.Base(ca)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if err := writeCertificate(ca, authority, authority, &authorityKey.PublicKey, authorityKey); err != nil {
		return err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nats"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: c.addresses(),
	}
	if err := writeCertificate(cert, leaf, authority, &own.PublicKey, authorityKey); err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		return err
	}
	return os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func writeCertificate(path string, cert, parent *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, public, signer)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}

// writeCredentials makes an operator, accounts and users.
func (c *Cluster) writeCredentials(s *secrets) error {
	operator, err := nkeys.CreateOperator()
	if err != nil {
		return err
	}
	public, err := operator.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewOperatorClaims(public)
	system, err := s.account("SYS", operator, false)
	if err != nil {
		return err
	}
	if s.system, err = system.PublicKey(); err != nil {
		return err
	}
	claims.SystemAccount = s.system
	if s.operator, err = claims.Encode(operator); err != nil {
		return err
	}
	app, err := s.account("APP", operator, true)
	if err != nil {
		return err
	}
	c.account = app
	other, err := s.account("OTHER", operator, true)
	if err != nil {
		return err
	}
	for _, user := range []struct {
		file     *string
		name     string
		account  nkeys.KeyPair
		pub, sub []string
	}{
		{&c.Creds, "gateway", app, []string{"sallyport.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "_WORKERS.sallyport.>", "_GATEWAYS.sallyport.>"}, []string{"_INBOX.sallyport.>", "_WORKERS.sallyport.>", "_GATEWAYS.sallyport.>"}},
		{&c.NoCreds, "nobody", app, []string{"nothing"}, []string{"_INBOX.sallyport.>"}},
		{&c.RawCreds, "raw", app, nil, nil},
		{&c.OtherCreds, "other", other, nil, nil},
	} {
		*user.file = filepath.Join(c.dir, user.name+".creds")
		if err := writeUser(*user.file, user.name, user.account, user.pub, user.sub); err != nil {
			return err
		}
	}
	return nil
}

// User writes the credentials of one more user of the account of Creds, which may publish and subscribe to these subjects.
func (c *Cluster) User(tb TB, name string, pub, sub []string) (path string) {
	tb.Helper()
	path = filepath.Join(c.dir, name+".creds")
	if err := writeUser(path, name, c.account, pub, sub); err != nil {
		tb.Fatal(err)
	}
	return path
}

// account makes an account, with or without JetStream.
func (s *secrets) account(name string, operator nkeys.KeyPair, jetStream bool) (nkeys.KeyPair, error) {
	pair, err := nkeys.CreateAccount()
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	claims := jwt.NewAccountClaims(public)
	claims.Name = name
	if jetStream {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: 64 << 20, DiskStorage: -1, Streams: -1, Consumer: -1}
	}
	text, err := claims.Encode(operator)
	s.accounts = append(s.accounts, fmt.Sprintf("%s: %q", public, text))
	return pair, err
}

// writeUser writes the credentials of a user; nil permits all subjects.
func writeUser(path, name string, account nkeys.KeyPair, pub, sub []string) error {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	claims.Pub.Allow.Add(pub...)
	claims.Sub.Allow.Add(sub...)
	text, err := claims.Encode(account)
	if err != nil {
		return err
	}
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	creds, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		return err
	}
	return os.WriteFile(path, creds, 0o600)
}
