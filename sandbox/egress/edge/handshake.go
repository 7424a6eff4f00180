package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
)

// Reasons of refusals.
const (
	ReasonTLS         = "a host with header is for TLS only"
	ReasonSNI         = "the TLS handshake names another host"
	ReasonHandshake   = "the TLS handshake failed"
	ReasonUntrusted   = "the server does not trust the gateway's certificate"
	ReasonSilent      = "the server closed the TLS connection without a request, as if it did not trust the gateway's certificate"
	ReasonHost        = "the HTTP request names another host"
	ReasonMethod      = "the method TRACE, TRACK or CONNECT would show or evade the header"
	ReasonCertificate = "the certificate of the host is not valid"
	ReasonFailed      = "the host did not answer the request"
)

var errName = errors.New(ReasonSNI)

// handshake makes a TLS connection with the sandbox. The reason is that of a refusal, "" for none.
func (e *Edge) handshake(c *conn) (secure *tls.Conn, reason string) {
	ctx, cancel := context.WithTimeout(e.ctx, handshakeLimit)
	defer cancel()
	secure = tls.Server(c, e.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, handshakeReason(err, c.greeted)
	}
	return secure, ""
}

// greet checks the name in the first message of a handshake.
func (e *Edge) greet(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c, ok := hello.Conn.(*conn); ok {
		c.greeted = true
	}
	if !strings.EqualFold(strings.TrimSuffix(hello.ServerName, "."), e.opts.Name) {
		return nil, errName
	}
	return nil, nil //nolint:nilnil // the configuration stays
}

// handshakeReason returns the reason why a handshake failed. greeted is whether the sandbox began one.
func handshakeReason(err error, greeted bool) string {
	remote, ok := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errName):
		return ReasonSNI
	case ok && remote.Op == "remote error":
		return alertReason(strings.TrimPrefix(remote.Err.Error(), "tls: "))
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonHandshake
	case is[tls.RecordHeaderError](err):
		return ReasonTLS
	case greeted && strings.HasPrefix(err.Error(), "tls:"):
		return ReasonHandshake
	case greeted: // the connection ended
		return ReasonSilent
	}
	return ""
}

// alertReason returns the reason for an alert of the sandbox. Its text is one of a few.
func alertReason(alert string) string {
	if strings.Contains(alert, "certificate") {
		return ReasonUntrusted + " (" + alert + ")"
	}
	return ReasonHandshake + " (" + alert + ")"
}

// watch notes which connections had a request, and reports those that had none.
func (e *Edge) watch(c net.Conn, state http.ConnState) {
	secure, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	of, ok := secure.NetConn().(*conn)
	switch {
	case !ok:
	case state == http.StateActive:
		of.use()
	case state == http.StateClosed && of.silent() && e.ctx.Err() == nil:
		e.opts.Refused(ReasonSilent)
	}
}

// hostReason returns the reason why a TLS connection with the host failed, "" if it is another error.
func hostReason(err error) string {
	wrong, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return ""
	}
	for _, known := range []struct {
		is   bool
		says string
	}{
		{is[x509.UnknownAuthorityError](wrong), "its authority is unknown"},
		{is[x509.HostnameError](wrong), "it is for another name"},
		{is[x509.CertificateInvalidError](wrong), "it has expired or must not be used so"},
	} {
		if known.is {
			return ReasonCertificate + ": " + known.says
		}
	}
	return ReasonCertificate
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
