package secretstore_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/secretstore"
	"sallyport/internal/secretstore/secretstoretest"
	"sallyport/internal/secretvalue"
)

// TestVault: both versions of the key-value engine, versions of a secret, and what an operator reads when it is not there.
func TestVault(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{Namespace: "team"}
	v.Put("secret/data/github", map[string]any{"token": "old-token-1"})
	v.Put("secret/data/github", map[string]any{"token": "new-token-2", "port": 8080, "with space": "x y"})
	v.Put("kv1/db", map[string]any{"password": "pw-of-v1", "data": "d", "metadata": "m"})
	net := network{vaultHost: v}
	s := net.open(func(m *secretstore.Managers) { m.Vault.Namespace = "team" }, map[string]string{"VAULT_TOKEN": v.Token(0, false)})
	want(t, s, "vault:secret/data/github#token", "new-token-2")
	want(t, s, "vault:secret/data/github#port", "8080")
	want(t, s, "vault:secret/data/github#with space", "x y")
	want(t, s, "vault:secret/data/github?version=1#token", "old-token-1")
	want(t, s, "vault:kv1/db#password", "pw-of-v1")
	if _, _, reads, _ := v.Counts(); reads != 3 {
		t.Errorf("%d reads: fields of one version are read together", reads)
	}
	wantError(t, s, "vault:secret/data/github#tokn", secretstore.Missing, `no field "tokn"`, "it has port, token, with space")
	wantError(t, s, "vault:secret/github#token", secretstore.Missing, "${vault:secret/github#token}: Vault does not have it", `write "secret/data/github"`)
	wantError(t, s, "vault:secret/data/none#token", secretstore.Missing, "vault read")
	wantError(t, s, "vault:secret/data/github?version=9#token", secretstore.Missing)
	other := net.open(nil, map[string]string{"VAULT_TOKEN": "hvs.wrong-token"})
	wantError(t, other, "vault:secret/data/github#token", secretstore.Missing, "namespace")
	wrong := net.open(func(m *secretstore.Managers) { m.Vault.Namespace = "team" }, map[string]string{"VAULT_TOKEN": "hvs.wrong-token"})
	wantError(t, wrong, "vault:secret/data/github#token", secretstore.Refused, "HTTP 403", "policy with read")
	none := net.open(nil, nil)
	wantError(t, none, "vault:secret/data/github#token", secretstore.Refused, "VAULT_TOKEN")
	nowhere := net.open(func(m *secretstore.Managers) { m.Vault.Address = "" }, nil)
	wantError(t, nowhere, "vault:secret/data/github#token", secretstore.Refused, "VAULT_ADDR")
}

// TestVaultLogins: tokens by AppRole, by a pod's service account, and from a file that an agent writes again.
func TestVaultLogins(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{RoleID: "role", SecretID: "secret-id", KubernetesRole: "gateway", JWT: "header.claims.signature", TokenTTL: time.Hour}
	v.Put("secret/data/a", map[string]any{"k": "value-1"})
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const name = "vault:secret/data/a#k"
	for _, c := range []struct {
		name, content string
		set           secretstore.Vault
		fails         string
	}{
		{name: "approle", set: secretstore.Vault{AppRole: secretstore.AppRole{RoleID: "role", SecretID: "secret-id", Mount: "approle"}}},
		{name: "wrong id", set: secretstore.Vault{AppRole: secretstore.AppRole{RoleID: "role", SecretID: "other", Mount: "approle"}}, fails: "refuses the login"},
		{name: "other mount", set: secretstore.Vault{AppRole: secretstore.AppRole{RoleID: "role", SecretID: "secret-id", Mount: "x"}}, fails: "refuses the login"},
		{name: "kubernetes", content: v.JWT, set: secretstore.Vault{Kubernetes: secretstore.Kubernetes{Role: "gateway", Mount: "kubernetes", TokenFile: file}}},
		{name: "stale pod", content: "old.jwt", set: secretstore.Vault{Kubernetes: secretstore.Kubernetes{Role: "gateway", Mount: "kubernetes", TokenFile: file}}, fails: "refuses the login"},
		{name: "file", content: v.Token(0, false), set: secretstore.Vault{TokenFile: file}},
		{name: "no file", set: secretstore.Vault{TokenFile: file + ".none"}, fails: "no such file"},
	} {
		write(c.content)
		s := network{vaultHost: v}.open(func(m *secretstore.Managers) { c.set.Address = m.Vault.Address; m.Vault = c.set }, nil)
		if c.fails != "" {
			wantError(t, s, name, secretstore.Refused, c.fails)
			continue
		}
		want(t, s, name, "value-1")
	}
	s := network{vaultHost: v}.open(func(m *secretstore.Managers) { m.Vault.TokenFile = file }, nil)
	write(v.Token(0, false))
	want(t, s, name, "value-1")
	v.Revoke()
	write(v.Token(0, false))
	want(t, s, "vault:secret/data/a?version=1#k", "value-1") // by the new token in the file
}

// roleStore opens a store that logs in by AppRole.
func roleStore(v *secretstoretest.Vault) func() *secretstore.Store {
	return func() *secretstore.Store {
		return network{vaultHost: v}.open(func(m *secretstore.Managers) {
			m.Vault.AppRole = secretstore.AppRole{RoleID: secretvalue.Secret(v.RoleID), Mount: "approle"}
		}, nil)
	}
}

// TestVaultTokenIsRenewed: the token is renewed before it ends, and another login follows at the end of its longest time, or
// when it was revoked.
func TestVaultTokenIsRenewed(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{RoleID: "role", TokenTTL: time.Hour, MaxTTL: 4 * time.Hour}
	v.Put("secret/data/a", map[string]any{"k": "value-1"})
	running(t, roleStore(v), func(t *testing.T, s *secretstore.Store) {
		t.Helper()
		const name = "vault:secret/data/a#k"
		want(t, s, name, "value-1")
		pass(150 * time.Minute)
		if logins, renewals, _, _ := v.Counts(); logins != 1 || renewals < 3 {
			t.Errorf("%d logins, %d renewals", logins, renewals)
		}
		pass(3 * time.Hour)
		if logins, _, _, _ := v.Counts(); logins != 2 {
			t.Errorf("%d logins after the longest time of a token", logins)
		}
		v.Revoke()
		pass(6 * time.Minute)
		want(t, s, name, "value-1")
		if logins, _, _, _ := v.Counts(); logins != 3 || s.Changed() {
			t.Errorf("%d logins after the token was revoked", logins)
		}
	})
}

// TestLease: a credential with a lease is used until it ends, the lease is renewed before, and at the end of its longest time
// there is another credential.
func TestLease(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{RoleID: "role", TokenTTL: 24 * time.Hour, LeaseTTL: time.Hour, LeaseMax: 3 * time.Hour}
	running(t, roleStore(v), func(t *testing.T, s *secretstore.Store) {
		t.Helper()
		const name = "vault:database/creds/app#password"
		first, err := s.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		want(t, s, "vault:database/creds/app#username", "v-app")
		pass(150 * time.Minute)
		want(t, s, name, first)
		if _, renewals, _, issued := v.Counts(); issued != 1 || renewals < 3 || s.Changed() {
			t.Errorf("%d renewals, %d credentials", renewals, issued)
		}
		if s.Refresh(t.Context(), map[string]string{name: first}) {
			t.Error("an upstream that connects gets another credential")
		}
		pass(30 * time.Minute) // the longest time ends
		second, err := s.Read(name)
		if _, _, _, issued := v.Counts(); err != nil || second == first || issued != 2 || !s.Changed() {
			t.Errorf("%d credentials; %v", issued, err)
		}
	})
}

// TestUnreachable: a cached value is used while it is valid; then the error is that of the manager. What can be read again
// is a change.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{RoleID: "role", TokenTTL: 100 * time.Hour}
	v.Put("secret/data/a", map[string]any{"k": "value-1"})
	running(t, roleStore(v), func(t *testing.T, s *secretstore.Store) {
		t.Helper()
		const name = "vault:secret/data/a#k"
		want(t, s, name, "value-1")
		for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
			v.Fail(status)
			pass(50 * time.Minute)
			want(t, s, name, "value-1")
			if s.Refresh(t.Context(), map[string]string{name: "value-1"}) || s.Changed() {
				t.Error("it has changed")
			}
			v.Fail(0)
			pass(10 * time.Minute)
		}
		v.Fail(http.StatusServiceUnavailable)
		pass(70 * time.Minute)
		wantError(t, s, name, secretstore.Unreachable, "${vault:secret/data/a#k}: Vault answers HTTP 503", "try again")
		if !s.Refresh(t.Context(), map[string]string{name: "value-1"}) {
			t.Error("an upstream that connects does not hear that there is no value")
		}
		v.Fail(0)
		pass(time.Minute)
		if !s.Changed() {
			t.Error("nobody hears that it can be read again")
		}
		want(t, s, name, "value-1")
	})
}

// TestRotation: another value is found when an upstream connects, and in the background. A secret that was removed is an
// error when it is read next.
func TestRotation(t *testing.T) {
	t.Parallel()
	v := &secretstoretest.Vault{RoleID: "role", TokenTTL: 100 * time.Hour}
	v.Put("secret/data/a", map[string]any{"k": "value-1"})
	running(t, roleStore(v), func(t *testing.T, s *secretstore.Store) {
		t.Helper()
		const name = "vault:secret/data/a#k"
		want(t, s, name, "value-1")
		v.Put("secret/data/a", map[string]any{"k": "value-2"})
		want(t, s, name, "value-1") // cached
		if s.Refresh(t.Context(), map[string]string{name: "value-1"}) {
			t.Error("it was read again though it is recent")
		}
		pass(2 * time.Second)
		if !s.Refresh(t.Context(), map[string]string{name: "value-1"}) || !s.Changed() {
			t.Error("another value is no change")
		}
		want(t, s, name, "value-2")
		v.Put("secret/data/a", map[string]any{"k": "value-3"})
		pass(6 * time.Minute)
		if !s.Changed() {
			t.Error("another value was not found in the background")
		}
		want(t, s, name, "value-3")
		v.Remove("secret/data/a")
		pass(6 * time.Minute)
		wantError(t, s, name, secretstore.Missing)
	})
}
