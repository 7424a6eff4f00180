package secretstoretest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Google is a twin of Google Secret Manager with one project, of the token service, and of the metadata server.
type Google struct {
	// Project is the project.
	Project string
	// Lasts is the lifetime of access tokens.
	Lasts time.Duration

	mu       sync.Mutex
	private  *rsa.PrivateKey
	tokens   map[string]time.Time
	versions map[string][]string
	corrupt  bool
	denied   bool
	issued   int
}

// Put adds a version of a secret.
func (g *Google) Put(name, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.versions == nil {
		g.versions = map[string][]string{}
	}
	g.versions[name] = append(g.versions[name], text)
}

// Set makes it deny all reads, or send them with a wrong checksum.
func (g *Google) Set(denied, corrupt bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied, g.corrupt = denied, corrupt
}

// Issued returns how many tokens it gave.
func (g *Google) Issued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.issued
}

const googleEmail = "sallyport@project.iam.gserviceaccount.com"

// KeyFile returns the file of a service account's key, for the token service at an address.
func (g *Google) KeyFile(tb testing.TB, address string) []byte {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.private = key
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": googleEmail, "private_key_id": "kid-1", "token_uri": address + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// ServeHTTP implements [http.Handler].
func (g *Google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		if why := g.checkAssertion(r); why != "" {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": why})
			return
		}
		g.token(w)
	case r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token":
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		g.token(w)
	default:
		g.access(w, r)
	}
}

func (g *Google) token(w http.ResponseWriter) {
	if g.tokens == nil {
		g.tokens = map[string]time.Time{}
	}
	token := "ya29." + rand.Text()
	g.tokens[token] = time.Now().Add(g.Lasts)
	g.issued++
	answer(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(g.Lasts.Seconds())})
}

// checkAssertion verifies the assertion; it returns what is wrong.
func (g *Google) checkAssertion(r *http.Request) string {
	if r.ParseForm() != nil || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "unsupported grant"
	}
	text := r.PostForm.Get("assertion")
	parts := strings.Split(text, ".")
	if len(parts) != 3 || g.private == nil {
		return "Invalid JWT"
	}
	var head struct{ Alg, Typ, Kid string }
	var claims assertionClaims
	if !decodePart(parts[0], &head) || !decodePart(parts[1], &claims) || head.Alg != "RS256" || head.Kid != "kid-1" {
		return "Invalid JWT"
	}
	if !g.isSigned(parts) {
		return "Invalid JWT Signature."
	}
	return claims.problem(r.Host)
}

type assertionClaims struct {
	Iss, Scope, Aud string
	Iat, Exp        int64
}

// problem returns what is wrong with the claims, for the token endpoint of a host.
func (claims assertionClaims) problem(host string) string {
	now := time.Now().Unix()
	switch {
	case claims.Iss != googleEmail || claims.Scope == "" || !strings.HasSuffix(claims.Aud, "://"+host+"/token"):
		return "Invalid JWT: wrong claims"
	case claims.Iat > now+60 || claims.Exp < now || claims.Exp-claims.Iat > 3600:
		return "Invalid JWT: Token must be a short-lived token"
	}
	return ""
}

// isSigned reports whether the key of the service account has signed an assertion.
func (g *Google) isSigned(parts []string) bool {
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return err == nil && rsa.VerifyPKCS1v15(&g.private.PublicKey, crypto.SHA256, sum[:], signature) == nil
}

func decodePart(text string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(data, into) == nil
}

func googleError(w http.ResponseWriter, status int, name string) {
	answer(w, status, map[string]any{"error": map[string]any{"code": status, "status": name, "message": "Permission 'secretmanager.versions.access' or resource"}})
}

func (g *Google) access(w http.ResponseWriter, r *http.Request) {
	ends, known := g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1/projects/"+g.Project+"/secrets/")
	name, version, found := strings.Cut(strings.TrimSuffix(rest, ":access"), "/versions/")
	versions := g.versions[name]
	number := len(versions)
	if version != "latest" {
		number = 0
		_, _ = fmt.Sscan(version, &number)
	}
	switch {
	case !known || time.Now().After(ends):
		googleError(w, http.StatusUnauthorized, "UNAUTHENTICATED")
	case g.denied || !ok:
		googleError(w, http.StatusForbidden, "PERMISSION_DENIED")
	case r.Method != http.MethodGet || !found || !strings.HasSuffix(r.URL.Path, ":access"):
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html>404</html>")
	case number < 1 || number > len(versions):
		googleError(w, http.StatusNotFound, "NOT_FOUND")
	default:
		data := []byte(versions[number-1])
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		if g.corrupt {
			sum++
		}
		answer(w, http.StatusOK, map[string]any{"name": r.URL.Path[4:], "payload": map[string]string{"data": base64.StdEncoding.EncodeToString(data), "dataCrc32c": fmt.Sprint(sum)}})
	}
}
