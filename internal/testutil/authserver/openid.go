package authserver

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// SetUser sets the claims of a user, for ID tokens and access tokens from now on.
func (s *Server) SetUser(subject string, claims map[string]any) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.users[subject] = claims
}

// SetUserinfo sets the claims of a user that only the userinfo endpoint has; "sub" replaces the subject.
func (s *Server) SetUserinfo(subject string, claims map[string]any) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.userinfo[subject] = claims
}

// AnswerUserinfo makes the userinfo endpoint answer with a body of that media type.
func (s *Server) AnswerUserinfo(kind, body string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.userinfoAnswer = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

// serveUserinfo serves the userinfo endpoint.
func (s *Server) serveUserinfo(w http.ResponseWriter, r *http.Request) {
	s.store.mu.Lock()
	answer := s.store.userinfoAnswer
	s.store.mu.Unlock()
	if answer == nil {
		s.provider.ServeHTTP(w, r)
		return
	}
	answer(w)
}

// Disable makes all refresh tokens of a user invalid, as for a disabled account.
func (s *Server) Disable(subject string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.disabled[subject] = true
}

// Rotate replaces the signing key, by one of another type; the old one is no longer published.
func (s *Server) Rotate(tb testing.TB) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.key = signingKey{"k2", jose.ES256, key}
}

// Forge replaces the ID tokens of token responses: change gets the claims of the real one and returns the forged one. nil ends it.
func (s *Server) Forge(change func(claims map[string]any) string) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.forge = change
}

// Sign returns a token with these claims, signed with the key of the server.
func (s *Server) Sign(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	s.store.mu.Lock()
	key := s.store.key
	s.store.mu.Unlock()
	return sign(tb, key.alg, key.key, key.id, claims)
}

// SignHMAC returns a token with these claims and an HMAC that has the server's public key as its secret.
func (s *Server) SignHMAC(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.store.key.key.Public())
	if err != nil {
		tb.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return sign(tb, jose.HS256, public, "k1", claims)
}

func sign(tb testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	tb.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := signAs("JWT", alg, key, id, payload)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// signAs returns a signed token of a type.
func signAs(kind string, alg jose.SignatureAlgorithm, key any, id string, payload []byte) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType(jose.ContentType(kind)).WithHeader("kid", id))
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// serveToken serves the token endpoint of an OpenID provider, with a forged ID token if the test asks for one.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	s.store.mu.Lock()
	forge := s.store.forge
	s.store.mu.Unlock()
	if forge == nil {
		s.provider.ServeHTTP(w, r)
		return
	}
	recorded := httptest.NewRecorder()
	s.provider.ServeHTTP(recorded, r)
	body := map[string]any{}
	if json.NewDecoder(bytes.NewReader(recorded.Body.Bytes())).Decode(&body) == nil {
		if token, ok := body["id_token"].(string); ok {
			claims := map[string]any{}
			if _, err := oidc.ParseToken(token, &claims); err == nil {
				body["id_token"] = forge(claims)
			}
		}
	}
	answer(w, recorded.Code, body)
}

// claimsOf returns a copy of the claims of a user.
func (s *store) claimsOf(subject string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.users[subject])
	if all == nil {
		all = map[string]any{}
	}
	return all
}

func (s *store) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, subject, _ string, _ []string) error {
	info.Subject = subject
	for name, value := range s.claimsOf(subject) {
		info.AppendClaims(name, value)
	}
	return nil
}

func (s *store) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, token, subject, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access[token] == "" {
		return errNotFound
	}
	info.Subject = subject
	for name, value := range s.userinfo[subject] {
		if name == "sub" {
			info.Subject, _ = value.(string)
		} else {
			info.AppendClaims(name, value)
		}
	}
	return nil
}

func (s *store) current() signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) { return s.current(), nil }
func (s *store) KeySet(context.Context) ([]op.Key, error) {
	return []op.Key{publicKey{s.current()}}, nil
}
func (s *store) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{s.current().alg}, nil
}

type signingKey struct {
	id  string
	alg jose.SignatureAlgorithm
	key crypto.Signer
}

func (k signingKey) ID() string                                  { return k.id }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return k.alg }
func (k signingKey) Key() any                                    { return k.key }

type publicKey struct{ signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return k.alg }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return k.key.Public() }
