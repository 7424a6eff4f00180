package oauth_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/gateway/upstream/oauth"
	"sallyport/gateway/upstream/oauth/oauthtest"
	"sallyport/internal/testutil/authserver"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tlsfiles"
)

// An upstream with a company's own authority and client certificates: its metadata is read as its calls are made. Its authorization
// server may have a certificate of that authority or of the system's, and gets no client certificate.
func TestLoginWithOwnAuthority(t *testing.T) {
	t.Parallel()
	for name, private := range map[string]bool{"authorization server of the authority": true, "authorization server of the system's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := tlstest.NewPrivate(t)
			files := tlsfiles.Files{CA: own.CA}
			files.Cert, files.Key = own.Client(t, 7, time.Now().Add(time.Hour))
			var shown atomic.Int32 // client certificates at the authorization server
			as := &authserver.Options{}
			browser := &authserver.Browser{}
			if private {
				as.TLS = &tls.Config{Certificates: []tls.Certificate{own.Server}, ClientAuth: tls.RequestClientCert, VerifyConnection: func(c tls.ConnectionState) error {
					shown.Add(int32(len(c.PeerCertificates)))
					return nil
				}}
				browser.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: own.Pool}}
			}
			w := newWorld(t, as, &oauthtest.Options{TLS: &tls.Config{Certificates: []tls.Certificate{own.Server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: own.Pool}})
			h := w.handler(func(s *oauth.Settings) { s.TLS = files })
			if err := w.tryLogin(h, browser); err != nil {
				t.Fatal(err)
			}
			token, err := h.TokenSource(t.Context())
			if err != nil || token == nil {
				t.Fatal(err)
			}
			if w.late.Store(int64(2 * time.Hour)); w.as.Count("refresh_token") != 0 {
				t.Error("refreshed before it was due")
			}
			if _, err := h.TokenSource(t.Context()); err != nil || w.as.Count("refresh_token") != 1 {
				t.Error(err)
			}
			if n := shown.Load(); n != 0 {
				t.Errorf("the authorization server got %d client certificates", n)
			}
			wantText(t, w.tryLogin(w.handler(func(s *oauth.Settings) { s.TLS.CA = own.CA }), browser), "certificate required")
			wantText(t, w.tryLogin(w.handler(nil), browser), "certificate signed by unknown authority")
		})
	}
}

// Files that cannot be used are an error of the login that names the setting.
func TestLoginWithDamagedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := w.tryLogin(w.handler(func(s *oauth.Settings) { s.TLS.CA = empty }), &authserver.Browser{})
	wantText(t, err, "its tls.ca cannot be used", "has no certificate in PEM")
}

// Files that are not there yet, such as those of a volume that is mounted later, are read by the first login after they are.
func TestLoginWithLateFiles(t *testing.T) {
	t.Parallel()
	own := tlstest.NewPrivate(t)
	text, err := os.ReadFile(own.CA)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, nil, &oauthtest.Options{TLS: &tls.Config{Certificates: []tls.Certificate{own.Server}}})
	late := filepath.Join(t.TempDir(), "ca.pem")
	h := w.handler(func(s *oauth.Settings) { s.TLS.CA = late })
	wantText(t, w.tryLogin(h, &authserver.Browser{}), "its tls.ca cannot be used", "no such file")
	if err := os.WriteFile(late, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.tryLogin(h, &authserver.Browser{}); err != nil {
		t.Error(err)
	}
}
