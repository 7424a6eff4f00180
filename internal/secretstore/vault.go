package secretstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sallyport/internal/secretvalue"
)

// vault is HashiCorp Vault.
type vault struct {
	client
	set  Vault
	base string

	mu    sync.Mutex
	token vaultToken
}

// vaultToken is the token in use.
type vaultToken struct {
	value string
	// made: it is from a login, so another one can be had.
	made bool
	// lasts is its lifetime at the last renewal, 0 for one that does not end or is not known; renewAt and ends follow from it.
	lasts         time.Duration
	renewable     bool
	renewAt, ends time.Time
}

func newVault(set Vault, env environment, transport func(ca string) (http.RoundTripper, error)) (manager, error) {
	set.Address = cmp.Or(set.Address, env.first("VAULT_ADDR"))
	set.Namespace = cmp.Or(set.Namespace, env.first("VAULT_NAMESPACE"))
	set.CA = cmp.Or(set.CA, env.first("VAULT_CACERT"))
	if set.TokenFile == "" && set.AppRole.RoleID == "" && set.Kubernetes.Role == "" && set.Token == "" {
		set.Token = secretvalue.Secret(env.first("VAULT_TOKEN"))
	}
	if set.Address == "" {
		return nil, &Error{Kind: Refused, Message: "the address of Vault is not known", Fix: "set secret_managers.vault.address, or VAULT_ADDR"}
	}
	base, err := checkAddress("Vault", set.Address, set.Insecure)
	if err != nil {
		return nil, err
	}
	t, err := transport(set.CA)
	if err != nil {
		return nil, err
	}
	return &vault{client: newClient("Vault", t), set: set, base: base.String() + "/v1/"}, nil
}

// vaultAnswer is an answer of the API.
type vaultAnswer struct {
	LeaseID       string          `json:"lease_id"`
	LeaseDuration int             `json:"lease_duration"`
	Renewable     bool            `json:"renewable"`
	Data          json.RawMessage `json:"data"`
	Warnings      []string        `json:"warnings"`
	Auth          *struct {
		ClientToken   string `json:"client_token"`
		LeaseDuration int    `json:"lease_duration"`
		Renewable     bool   `json:"renewable"`
	} `json:"auth"`
}

func (v *vault) read(ctx context.Context, n name) (answer, error) {
	path := escapePath(n.path)
	if len(n.version) > 0 {
		path += "?" + n.version.Encode()
	}
	got, err := v.authorized(ctx, http.MethodGet, path, nil)
	if err != nil {
		return answer{}, explainVault(n, got, err)
	}
	data, err := valuesOf(got.Data)
	if err != nil {
		return answer{}, &Error{Kind: Missing, Message: "Vault has no values there", Fix: "correct the path"}
	}
	a := answer{fields: data}
	if got.LeaseID != "" && got.LeaseDuration > 0 {
		a.lease = lease{got.LeaseID, seconds(got.LeaseDuration), got.Renewable}
	}
	return a, nil
}

// valuesOf returns the values of a secret: those of version 2 of the key-value engine are one level deeper.
func valuesOf(data []byte) (map[string]string, error) {
	var v2 struct {
		Data     json.RawMessage `json:"data"`
		Metadata *struct {
			Version int `json:"version"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &v2) == nil && v2.Metadata != nil && v2.Metadata.Version > 0 {
		data = v2.Data
	}
	return textFields(data)
}

// explainVault adds to an error what the operator can do.
func explainVault(n name, got vaultAnswer, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Fix != "" {
		return err
	}
	at := quoted(n.path)
	switch e.Kind {
	case Refused:
		e.Fix = "give the token a policy with read on " + at
	case Missing:
		e.Fix = "check the path and the namespace with vault read " + at
		if first, rest, _ := strings.Cut(n.path, "/"); !strings.HasPrefix(rest, "data/") && len(got.Warnings) > 0 && strings.Contains(got.Warnings[0], "versioned") {
			e.Fix = "write " + quoted(first+"/data/"+rest) + ": the engine has versions"
		}
	}
	return e
}

func (v *vault) renew(ctx context.Context, l lease) (lease, error) {
	body, err := json.Marshal(map[string]any{"lease_id": l.id, "increment": int(l.lasts / time.Second)})
	if err != nil {
		return lease{}, err
	}
	got, err := v.authorized(ctx, http.MethodPut, "sys/leases/renew", body)
	if err != nil {
		return lease{}, err
	}
	return lease{l.id, seconds(got.LeaseDuration), got.Renewable}, nil
}

// authorized sends a request with the token. If it is refused, another token is tried once, where there is a way to one.
func (v *vault) authorized(ctx context.Context, method, path string, body []byte) (vaultAnswer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fresh, err := v.ensureToken(ctx)
	if err != nil {
		return vaultAnswer{}, err
	}
	got, err := v.request(ctx, method, path, body, v.token.value)
	if fresh || !isRefused(err) || !v.canReplaceToken() {
		return got, err
	}
	v.token = vaultToken{}
	if _, err := v.ensureToken(ctx); err != nil {
		return vaultAnswer{}, err
	}
	return v.request(ctx, method, path, body, v.token.value)
}

func isRefused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == Refused
}

// request sends one request.
func (v *vault) request(ctx context.Context, method, path string, body []byte, token string) (got vaultAnswer, err error) {
	header := http.Header{"X-Vault-Request": {"true"}}
	if token != "" {
		header.Set("X-Vault-Token", token)
	}
	if v.set.Namespace != "" {
		header.Set("X-Vault-Namespace", v.set.Namespace)
	}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	res, err := v.send(ctx, method, v.base+path, header, body)
	if err != nil {
		return got, err
	}
	if e := res.statusError(v.what); e != nil {
		_ = v.decode(res, &got) // its warnings, if it is JSON
		if res.status == http.StatusBadRequest && strings.Contains(path, "/login") {
			e.Message = "Vault refuses the login (HTTP 400)"
		}
		return got, e
	}
	return got, v.decode(res, &got)
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// seconds is a duration of an answer, at most ten years.
func seconds(n int) time.Duration {
	return time.Duration(max(0, min(n, 10*365*24*3600))) * time.Second
}
