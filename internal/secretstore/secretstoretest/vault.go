// Package secretstoretest has twins of the APIs of secret managers for tests. They check what the real ones check: paths,
// methods, tokens and their ends, signatures, leases; and they answer in the forms that the vendors document.
package secretstoretest

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Vault is a twin of HashiCorp Vault, as in its API documentation. All fields but those of state are set before use.
type Vault struct {
	// Namespace is the only one with secrets.
	Namespace string
	// RoleID and SecretID, or KubernetesRole and JWT, log in.
	RoleID, SecretID, KubernetesRole, JWT string
	// TokenTTL is the lifetime of tokens from a login, MaxTTL that after renewals.
	TokenTTL, MaxTTL time.Duration
	// LeaseTTL and LeaseMax are the same of leases.
	LeaseTTL, LeaseMax time.Duration

	mu      sync.Mutex
	tokens  map[string]*grant
	leases  map[string]*grant
	secrets map[string][]map[string]any // of key-value engines, by API path; the versions of version 2
	// Logins, Renewals and Reads count requests that succeeded.
	logins, renewals, reads, issued int
	down                            int // the status of all answers, 0 for none
}

type grant struct {
	made, ends time.Time
	max        time.Duration
	renewable  bool
}

// Counts returns how many logins, renewals of a token or a lease, and reads there were, and how many credentials with a lease.
func (v *Vault) Counts() (logins, renewals, reads, issued int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.logins, v.renewals, v.reads, v.issued
}

// Put stores a secret at the path of the API: with /data/ in it as the next version.
func (v *Vault) Put(path string, values map[string]any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.secrets == nil {
		v.secrets = map[string][]map[string]any{}
	}
	if !strings.Contains(path, "/data/") {
		v.secrets[path] = nil
	}
	v.secrets[path] = append(v.secrets[path], maps.Clone(values))
}

// Remove removes a secret.
func (v *Vault) Remove(path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.secrets, path)
}

// Token creates a token; without ttl it has no end.
func (v *Vault) Token(ttl time.Duration, renewable bool) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.newToken(ttl, 0, renewable)
}

// Revoke ends all tokens.
func (v *Vault) Revoke() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.tokens)
}

// Fail makes all answers have a status, such as 503 for a sealed server; 0 ends that.
func (v *Vault) Fail(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.down = status
}

func (v *Vault) newToken(ttl, most time.Duration, renewable bool) string {
	if v.tokens == nil {
		v.tokens = map[string]*grant{}
	}
	token := "hvs." + rand.Text()
	v.tokens[token] = newGrant(ttl, most, renewable)
	return token
}

func newGrant(ttl, most time.Duration, renewable bool) *grant {
	g := &grant{made: time.Now(), max: most, renewable: renewable}
	if ttl > 0 {
		g.ends = g.made.Add(ttl)
	}
	return g
}

func (g *grant) valid() bool { return g != nil && (g.ends.IsZero() || time.Now().Before(g.ends)) }

// renew extends a grant, up to its longest time.
func (g *grant) renew(ttl time.Duration) time.Duration {
	g.ends = time.Now().Add(ttl)
	if last := g.made.Add(g.max); g.max > 0 && g.ends.After(last) {
		g.ends = last
	}
	return time.Until(g.ends)
}

// ServeHTTP implements [http.Handler].
func (v *Vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/")
	switch {
	case v.down != 0:
		vaultErrors(w, v.down, "Vault is sealed")
	case !ok || r.Header.Get("X-Vault-Namespace") != v.Namespace:
		vaultErrors(w, http.StatusNotFound)
	case strings.HasPrefix(path, "auth/") && strings.HasSuffix(path, "/login"):
		v.login(w, r, path)
	case !v.tokens[r.Header.Get("X-Vault-Token")].valid():
		vaultErrors(w, http.StatusForbidden, "permission denied")
	default:
		v.authorized(w, r, path)
	}
}

// authorized answers a request with a valid token.
func (v *Vault) authorized(w http.ResponseWriter, r *http.Request, path string) {
	switch {
	case path == "auth/token/lookup-self" && r.Method == http.MethodGet:
		v.lookUp(w, v.tokens[r.Header.Get("X-Vault-Token")])
	case path == "auth/token/renew-self" && r.Method == http.MethodPost:
		v.renewToken(w, r.Header.Get("X-Vault-Token"))
	case path == "sys/leases/renew" && r.Method == http.MethodPut:
		v.renewLease(w, r)
	case path == "database/creds/app" && r.Method == http.MethodGet:
		v.issue(w)
	case r.Method == http.MethodGet:
		v.secret(w, r, path)
	default:
		vaultErrors(w, http.StatusMethodNotAllowed)
	}
}

func vaultErrors(w http.ResponseWriter, status int, errs ...string) {
	answer(w, status, map[string]any{"errors": append([]string{}, errs...)})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (v *Vault) login(w http.ResponseWriter, r *http.Request, path string) {
	var in map[string]string
	right := r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&in) == nil
	switch path {
	case "auth/approle/login":
		right = right && v.RoleID != "" && in["role_id"] == v.RoleID && in["secret_id"] == v.SecretID
	case "auth/kubernetes/login":
		right = right && v.JWT != "" && in["role"] == v.KubernetesRole && in["jwt"] == v.JWT
	default:
		right = false
	}
	if !right {
		vaultErrors(w, http.StatusBadRequest, "invalid role or secret ID")
		return
	}
	v.logins++
	answer(w, http.StatusOK, map[string]any{"auth": map[string]any{"client_token": v.newToken(v.TokenTTL, v.MaxTTL, true), "lease_duration": int(v.TokenTTL.Seconds()), "renewable": true}})
}

func (v *Vault) lookUp(w http.ResponseWriter, g *grant) {
	ttl := 0
	if !g.ends.IsZero() {
		ttl = int(time.Until(g.ends).Seconds())
	}
	answer(w, http.StatusOK, map[string]any{"data": map[string]any{"ttl": ttl, "renewable": g.renewable}})
}

func (v *Vault) renewToken(w http.ResponseWriter, token string) {
	g := v.tokens[token]
	if !g.renewable {
		vaultErrors(w, http.StatusBadRequest, "lease is not renewable")
		return
	}
	v.renewals++
	left := g.renew(max(v.TokenTTL, time.Minute))
	answer(w, http.StatusOK, map[string]any{"auth": map[string]any{"client_token": token, "lease_duration": int(left.Seconds()), "renewable": true}})
}

func (v *Vault) renewLease(w http.ResponseWriter, r *http.Request) {
	var in struct {
		LeaseID string `json:"lease_id"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || !v.leases[in.LeaseID].valid() {
		vaultErrors(w, http.StatusBadRequest, "lease not found")
		return
	}
	v.renewals++
	left := v.leases[in.LeaseID].renew(v.LeaseTTL)
	answer(w, http.StatusOK, map[string]any{"lease_id": in.LeaseID, "lease_duration": int(left.Seconds()), "renewable": true})
}

// issue makes a credential with a lease, as the database engine does.
func (v *Vault) issue(w http.ResponseWriter) {
	if v.leases == nil {
		v.leases = map[string]*grant{}
	}
	id := "database/creds/app/" + rand.Text()
	v.leases[id] = newGrant(v.LeaseTTL, v.LeaseMax, true)
	v.issued++
	answer(w, http.StatusOK, map[string]any{"lease_id": id, "lease_duration": int(v.LeaseTTL.Seconds()), "renewable": true, "data": map[string]any{"username": "v-app", "password": rand.Text()}})
}

func (v *Vault) secret(w http.ResponseWriter, r *http.Request, path string) {
	versions := v.secrets[path]
	if len(versions) == 0 {
		first, rest, _ := strings.Cut(path, "/")
		if v.secrets[first+"/data/"+rest] != nil {
			answer(w, http.StatusNotFound, map[string]any{"errors": []string{}, "warnings": []string{"Invalid path for a versioned K/V secrets engine. See the API docs for the appropriate API endpoints to use."}})
			return
		}
		vaultErrors(w, http.StatusNotFound)
		return
	}
	v.reads++
	if !strings.Contains(path, "/data/") {
		answer(w, http.StatusOK, map[string]any{"lease_id": "", "lease_duration": 2764800, "renewable": false, "data": versions[0]})
		return
	}
	number := len(versions)
	if asked := r.URL.Query().Get("version"); asked != "" {
		number = 0
		_ = json.Unmarshal([]byte(asked), &number)
	}
	if number < 1 || number > len(versions) {
		vaultErrors(w, http.StatusNotFound)
		return
	}
	answer(w, http.StatusOK, map[string]any{"lease_id": "", "lease_duration": 0, "data": map[string]any{
		"data": versions[number-1], "metadata": map[string]any{"version": number, "created_time": "2026-01-02T03:04:05Z", "deletion_time": "", "destroyed": false},
	}})
}
