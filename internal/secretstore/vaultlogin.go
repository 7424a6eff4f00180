package secretstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// podToken is where Kubernetes puts the token of a pod's service account.
const podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token" //nolint:gosec // a path

// ensureToken gets a token if there is none that is valid; fresh reports whether it did. It is called with mu held.
func (v *vault) ensureToken(ctx context.Context) (fresh bool, err error) {
	if v.token.value != "" && (v.token.ends.IsZero() || time.Now().Before(v.token.ends)) {
		return false, nil
	}
	switch {
	case v.set.AppRole.RoleID != "":
		return true, v.login(ctx, "auth/"+escapePath(v.set.AppRole.Mount)+"/login", map[string]string{"role_id": string(v.set.AppRole.RoleID), "secret_id": string(v.set.AppRole.SecretID)})
	case v.set.Kubernetes.Role != "":
		jwt, err := readCredential(cmp.Or(v.set.Kubernetes.TokenFile, podToken))
		if err != nil {
			return true, err
		}
		return true, v.login(ctx, "auth/"+escapePath(v.set.Kubernetes.Mount)+"/login", map[string]string{"role": v.set.Kubernetes.Role, "jwt": string(jwt)})
	case v.set.TokenFile != "":
		token, err := readCredential(v.set.TokenFile)
		if err != nil {
			return true, err
		}
		v.token = vaultToken{value: string(token)}
	case v.set.Token != "":
		v.token = vaultToken{value: string(v.set.Token)}
	default:
		return true, &Error{Kind: Refused, Message: "there is no token for Vault", Fix: "set token, token_file, approle or kubernetes under secret_managers.vault, or VAULT_TOKEN"}
	}
	v.lookUpToken(ctx)
	return true, nil
}

// canReplaceToken reports whether another token can be had than the one that was refused.
func (v *vault) canReplaceToken() bool { return v.token.made || v.set.TokenFile != "" }

// login gets a token by an authentication method.
func (v *vault) login(ctx context.Context, path string, credentials map[string]string) error {
	body, err := json.Marshal(credentials)
	if err != nil {
		return err
	}
	got, err := v.request(ctx, http.MethodPost, path, body, "")
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Kind == Refused {
			e.Fix = "check the credentials of the login under secret_managers.vault"
		}
		return err
	}
	if got.Auth == nil || got.Auth.ClientToken == "" {
		return &Error{Kind: Invalid, Message: "the login at Vault gave no token"}
	}
	v.token = vaultToken{value: got.Auth.ClientToken, made: true}
	v.token.setLifetime(seconds(got.Auth.LeaseDuration), got.Auth.Renewable)
	return nil
}

// lookUpToken finds out how long a given token lasts. Without that it is used until it is refused.
func (v *vault) lookUpToken(ctx context.Context) {
	got, err := v.request(ctx, http.MethodGet, "auth/token/lookup-self", nil, v.token.value)
	var data struct {
		TTL       int  `json:"ttl"`
		Renewable bool `json:"renewable"`
	}
	if err == nil && json.Unmarshal(got.Data, &data) == nil && data.TTL > 0 {
		v.token.setLifetime(seconds(data.TTL), data.Renewable)
		v.token.ends = time.Time{} // the server says when it has ended: another process may renew it
	}
}

// setLifetime plans the renewal of a token: after two thirds of its time.
func (t *vaultToken) setLifetime(lasts time.Duration, renewable bool) {
	t.lasts, t.renewable, t.renewAt, t.ends = lasts, renewable, time.Time{}, time.Time{}
	if lasts > 0 {
		t.renewAt, t.ends = time.Now().Add(lasts*2/3), time.Now().Add(lasts)
	}
}

// due implements keeper.
func (v *vault) due() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.token.renewAt
}

// maintain renews the token, or logs in again where that is not possible or gives little time.
func (v *vault) maintain(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.token.renewable {
		got, err := v.request(ctx, http.MethodPost, "auth/token/renew-self", []byte("{}"), v.token.value)
		if err == nil && got.Auth != nil && (seconds(got.Auth.LeaseDuration) >= v.token.lasts/2 || !v.token.made) {
			made, value := v.token.made, v.token.value
			v.token = vaultToken{value: value, made: made}
			v.token.setLifetime(seconds(got.Auth.LeaseDuration), got.Auth.Renewable)
			if !made {
				v.token.ends = time.Time{}
			}
			return
		}
	}
	if !v.canReplaceToken() {
		v.token.renewAt = time.Now().Add(retryCached)
		return
	}
	old := v.token
	v.token = vaultToken{}
	if _, err := v.ensureToken(ctx); err != nil { // the old one may still be valid
		v.token = old
		v.token.renewAt = time.Now().Add(retryFailed)
	}
}
