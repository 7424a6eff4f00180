// Package tlsfiles reads the files that settings name for TLS: the authorities to trust, and a client certificate. Its main
// type is [Files].
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sallyport/internal/sanitize"
)

// Files are the files for the connections to a server.
type Files struct {
	// CA is a PEM file with the certificates to trust; default those of the system.
	CA string
	// Cert is a PEM file with a client certificate and its intermediate ones. It is read for each connection.
	Cert string
	// Key is a PEM file with its key.
	Key string
}

// IsSet reports whether a file is named.
func (f Files) IsSet() bool { return f != Files{} }

// Fault is the reason why settings cannot be used, and the key of them that is wrong: ca, cert or key.
type Fault struct{ Key, Message string }

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// Pair returns a fault if a certificate has no key, or a key no certificate. It reads no file.
func (f Files) Pair() *Fault {
	switch {
	case f.Cert != "" && f.Key == "":
		return &Fault{"cert", `a client certificate needs its "key"`}
	case f.Key != "" && f.Cert == "":
		return &Fault{"key", `a key needs its "cert"`}
	}
	return nil
}

// Config returns the configuration of a client. The certificate is read for each connection, as it may be renewed. The error is a
// [*Fault].
func (f Files) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if fault := f.Pair(); fault != nil {
		return nil, fault
	}
	if f.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if err := f.addAuthorities(config.RootCAs); err != nil {
			return nil, err
		}
	}
	if f.Cert == "" {
		return config, nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.certificate() }
	_, err := f.certificate()
	return config, err
}

// ReferredConfig returns the configuration for other servers that an upstream refers to, such as its authorization server: they may have
// certificates of the system's authorities or of CA, and get no client certificate. The error is a [*Fault].
func (f Files) ReferredConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA == "" {
		return config, nil
	}
	var err error
	if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	return config, f.addAuthorities(config.RootCAs)
}

// addAuthorities adds the certificates of CA.
func (f Files) addAuthorities(pool *x509.CertPool) error {
	text, err := read("ca", f.CA)
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = &Fault{"ca", f.CA + " has no certificate in PEM"}
	}
	return err
}

// certificate reads the client certificate.
func (f Files) certificate() (*tls.Certificate, error) {
	cert, err := read("cert", f.Cert)
	if err != nil {
		return nil, err
	}
	key, err := read("key", f.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, pairFault(f, cert, err)
	}
	if pair.Leaf != nil && time.Now().After(pair.Leaf.NotAfter) {
		return nil, &Fault{"cert", fmt.Sprintf("the certificate in %s expired on %s", f.Cert, pair.Leaf.NotAfter.UTC().Format(time.DateOnly))}
	}
	return &pair, nil
}

// pairFault says which of the two files is wrong. The text of an error of crypto/tls has nothing of a key.
func pairFault(f Files, cert []byte, err error) error {
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(cert) {
		return &Fault{"cert", f.Cert + " has no certificate in PEM"}
	}
	return &Fault{"key", fmt.Sprintf("%s is not the key of the certificate in %s: %s", f.Key, f.Cert, sanitize.Line(err.Error(), 200))}
}

// maxFile bounds a file, in bytes.
const maxFile = 8 << 20

// read reads a file, which is not one that blocks.
func read(key, path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, &Fault{key, path + " is not a file"}
	case err == nil && info.Size() > maxFile:
		return nil, &Fault{key, fmt.Sprintf("%s has more than %d MiB", path, maxFile>>20)}
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &Fault{key, fmt.Sprintf("%s cannot be read: %v", path, e.Err)}
	}
	return text, err
}
