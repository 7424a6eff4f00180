package secretstore_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/secretstore"
	"sallyport/internal/secretstore/secretstoretest"
	"sallyport/internal/secretvalue"
	"sallyport/internal/testutil/tlstest"
)

// credentials are those of all managers.
var credentials = map[string]string{
	"VAULT_TOKEN": "hvs.credential", "OP_CONNECT_TOKEN": "op-credential", "AWS_ACCESS_KEY_ID": "AKIDCREDENTIAL", "AWS_SECRET_ACCESS_KEY": "aws-credential",
}

// TestHostileManagers: an answer that is no answer of the API is an error that repeats nothing of it, in bounded time and
// memory.
func TestHostileManagers(t *testing.T) {
	t.Parallel()
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    secretstore.Kind
		message string
	}{
		"huge":     {text(200, `{"data":{"k":"`+strings.Repeat("x", 2<<20)), secretstore.Invalid, "more than 1 MiB"},
		"page":     {text(200, "<html>evil-text"), secretstore.Invalid, ""},
		"list":     {text(200, `["evil-text"]`), secretstore.Invalid, ""},
		"echo":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403); _ = r.Header.Write(w) }, secretstore.Refused, "HTTP 403"},
		"code":     {text(400, `{"__type":"evil text \u001b[2J","errors":["evil-text"]}`), secretstore.Refused, "HTTP 400"},
		"redirect": {http.RedirectHandler("https://evil.example/", http.StatusTemporaryRedirect).ServeHTTP, secretstore.Invalid, "redirects to another address"},
		"slow":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, secretstore.Unreachable, "did not answer in time"},
	} {
		synctest.Test(t, func(t *testing.T) {
			evil := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the redirect was followed", name) })
			net := network{vaultHost: c.handler, connectHost: c.handler, awsHost: c.handler, googleHost: c.handler, "metadata.google.internal": c.handler, "evil.example": evil}
			s := net.open(func(m *secretstore.Managers) { m.GCP.Instance = true }, credentials)
			for _, reference := range []string{"vault:secret/data/a#k", "op:infra/github/token", "aws:plain", "gcp:projects/p/secrets/s"} {
				kind := c.kind
				if name == "list" && (strings.HasPrefix(reference, "op:") || strings.HasPrefix(reference, "aws:")) {
					continue // a list is an answer of one, and a list of strings no list of entries
				}
				wantError(t, s, reference, kind, c.message)
				if _, err := s.Read(reference); strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "redential\"") || strings.Contains(err.Error(), "-credential") || strings.Contains(err.Error(), "AKIDCREDENTIAL") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestUnreachableOnce: a manager that does not answer is not asked for each reference.
func TestUnreachableOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s := network{vaultHost: slow}.open(nil, credentials)
		for _, name := range []string{"a", "b", "c", "d"} {
			wantError(t, s, "vault:secret/data/"+name+"#k", secretstore.Unreachable, "in time")
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestTLS: over a real connection, the authority must be known, and plain HTTP is for this machine only.
func TestTLS(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{}
	v.Put("secret/data/a", map[string]any{"k": "value-1"})
	trusted := tlstest.NewServer(t, v)
	stranger := httptest.NewTLSServer(v)
	t.Cleanup(stranger.Close)
	plain := httptest.NewServer(v)
	t.Cleanup(plain.Close)
	token := secretvalue.Secret(v.Token(0, false))
	open := func(address string, insecure bool) *secretstore.Store {
		m := secretstore.DefaultManagers()
		m.Vault.Address, m.Vault.Token, m.Vault.CA, m.Vault.Insecure = address, token, tlstest.Authority(t), insecure
		s := secretstore.New(nil)
		s.Use(m)
		return s
	}
	const name = "vault:secret/data/a#k"
	want(t, open(trusted.URL, false), name, "value-1")
	want(t, open(plain.URL, false), name, "value-1")
	wantError(t, open(stranger.URL, false), name, secretstore.Unreachable, "certificate of Vault is not trusted", `"ca"`)
	wantError(t, open("http://vault.example.com", false), name, secretstore.Refused, "as they are")
	var asked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(elsewhere.Close)
	redirect := tlstest.NewServer(t, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	wantError(t, open(redirect.URL, false), name, secretstore.Invalid, "redirects")
	if asked.Load() {
		t.Error("the token went to another host")
	}
	plain.Close()
	wantError(t, open(plain.URL, false), name, secretstore.Unreachable, "Vault cannot be reached: dial tcp")
}

// TestReferences: what is a reference to a manager, and what cannot be one.
func TestReferences(t *testing.T) {
	t.Parallel()
	for reference, owned := range map[string]bool{"vault:a/b#c": true, "op:x": true, "aws:-x": false, "vault:-default": false, "file:vault:x": false, "aws": false, "azure:x": false} {
		if got := secretstore.Owns(reference); got != owned {
			t.Errorf("%s: %v", reference, got)
		}
	}
	for _, reference := range []string{
		"vault:secret#k", "vault:secret/data/a", "vault:secret/../sys/a#k", "vault:secret//a#k", "vault:a/b#", "vault:a/b?list=true#k", "vault:a/b\x1b#k", "vault: a/b#k",
		"op:a/b", "op:a/b/c/d/e", `op:a/b" or title eq "c/d`, "aws:", "aws:a#", "aws:a?version=", "gcp:projects/p", "gcp:a b", "gcp:a:access", "gcp:projects/p/secrets/s/versions/1:x", "aws:" + strings.Repeat("x", 700),
	} {
		if err := secretstore.Check(reference); err == nil {
			t.Errorf("%s is a reference", reference)
		}
	}
}
