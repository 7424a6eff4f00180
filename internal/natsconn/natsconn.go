// Package natsconn connects to NATS servers, with credentials and TLS. [Authority] makes credentials.
package natsconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/config"
	"sallyport/internal/tlsfiles"
)

// Server are NATS servers of one cluster, and how to connect to them.
type Server struct {
	// URL are the addresses of the servers, nats:// or tls://, separated by commas.
	URL string
	// Creds is a file with credentials (a JWT and a seed); "" is none.
	Creds string
	// CA is a file with the certificates of authorities to trust; "" means those of the system. Cert and Key are files with
	// a client certificate.
	CA, Cert, Key string
	// Name is what the servers show for this process.
	Name string
}

// Of returns the servers of the store in the settings.
func Of(set config.Store, name string) Server {
	return Server{URL: set.URL, Creds: set.Creds, CA: set.TLS.CA, Cert: set.TLS.Cert, Key: set.TLS.Key, Name: name}
}

// Timeout is the timeout of one attempt to connect.
const Timeout = 5 * time.Second

// Options returns the options of a connection that is restored whenever it is lost, and that refuses to send until then. The error
// is of a file that cannot be read.
func (s Server) Options() ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(s.Name), nats.Timeout(Timeout), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.IgnoreAuthErrorAbort(), nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), nats.ReconnectBufSize(-1),
	}
	if s.Creds != "" {
		if _, err := os.Stat(s.Creds); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		opts = append(opts, nats.UserCredentials(s.Creds))
	}
	secure := s.CA != "" || s.Cert != ""
	for address := range strings.SplitSeq(s.URL, ",") {
		secure = secure || strings.HasPrefix(address, "tls://")
	}
	if !secure {
		return opts, nil
	}
	about, err := tlsfiles.Files{CA: s.CA, Cert: s.Cert, Key: s.Key}.Config()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return append(opts, nats.Secure(about)), nil
}

// Connect connects. Servers that do not answer are no error: the connection is then made in the background, and unanswered is
// why. The error is of servers that refuse this client, or of a file.
func (s Server) Connect(more ...nats.Option) (conn *nats.Conn, unanswered, err error) {
	opts, err := s.Options()
	if err != nil {
		return nil, nil, err
	}
	opts = append(opts, more...)
	conn, err = nats.Connect(s.URL, opts...)
	if err == nil {
		return conn, nil, nil
	}
	if isRefusal(err) {
		return nil, nil, fmt.Errorf("connect to %s: %w", s.URL, err)
	}
	conn, again := nats.Connect(s.URL, append(opts, nats.RetryOnFailedConnect(true))...)
	if again != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", s.URL, again)
	}
	return conn, err, nil
}

// isRefusal reports whether an error of a connection is one that does not end by itself.
func isRefusal(err error) bool {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, failed := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return unknown || name || invalid || failed || alert || errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired) || errors.Is(err, nats.ErrSecureConnRequired) || errors.Is(err, nats.ErrSecureConnWanted)
}
