package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/secretstore"
	"sallyport/internal/secretstore/secretstoretest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// managed is a gateway with an upstream whose token is in Vault.
type managed struct {
	*gateway.Gateway
	vault *secretstoretest.Vault
	site  *site
	token atomic.Pointer[string] // what the upstream accepts
	log   lockedBuffer
}

// text returns what was written.
func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

const managedPath = "secret/data/site"

// rotate replaces the token, in Vault and at the upstream.
func (m *managed) rotate(token string) {
	m.vault.Put(managedPath, map[string]any{"token": token})
	m.token.Store(&token)
}

func openManaged(t *testing.T, ready bool) *managed {
	t.Helper()
	m := &managed{vault: &secretstoretest.Vault{RoleID: "role-id-1", SecretID: "secret-id-1", TokenTTL: time.Hour}}
	m.site = newSite(t, func(s *site) {
		s.tool("tell", "Tell the token.", "", func(json.RawMessage) *mcp.CallToolResult { return text("it is " + *m.token.Load()) })
	})
	inner := m.site.web.Config.Handler
	m.site.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*m.token.Load() {
			http.Error(w, "who are you, "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	m.rotate("first-T0ken-of-the-site")
	if !ready {
		m.vault.Fail(http.StatusServiceUnavailable)
	}
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	settings := "upstreams:\n  site: {url: " + m.site.web.URL + ", headers: {Authorization: 'Bearer ${vault:" + managedPath + "#token}'}}\n" +
		"secret_managers:\n  vault: {address: " + tlstest.NewServer(t, m.vault).URL + ", ca: " + tlstest.Authority(t) + ", approle: {role_id: role-id-1, secret_id: '${SECRET_ID}'}}\n"
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&m.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store := secretstore.New(&secretstore.Options{Logger: log})
	load := func() (*config.Config, error) {
		return config.Sources{Managers: store, Getenv: func(name string) (string, bool) { return "secret-id-1", name == "SECRET_ID" }}.Load(path)
	}
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	m.Gateway = open(t, cfg, &gateway.Options{Logger: log, ManagedSecrets: store})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { m.Reloader.WatchSettings(ctx, load) })
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	return m
}

// works waits until calls work, which hide the token.
func (m *managed) works(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, "the upstream works", 30*time.Second, func() bool {
		got, err := call(t, m.Gateway, "site.tell", `{}`)
		return err == nil && strings.Contains(fmt.Sprint(got.Content), "it is [hidden]")
	})
}

// TestManagedSecret: an upstream gets its token from Vault. When it is replaced there and at the upstream, the next connection
// has the new one, without a restart or another session of the gateway; neither is seen anywhere.
func TestManagedSecret(t *testing.T) {
	t.Parallel()
	m := openManaged(t, true)
	m.works(t)
	started := time.Now()
	testutil.Eventually(t, "the secret is older than a burst of connections", 30*time.Second, func() bool { return time.Since(started) > 1200*time.Millisecond })
	m.rotate("second-T0ken-of-the-site")
	m.works(t)
	testutil.Eventually(t, "the settings have it as well", 30*time.Second, func() bool {
		return m.Reloader.Current().Load().Upstreams[0].Headers["Authorization"] == "Bearer second-T0ken-of-the-site"
	})
	testutil.Eventually(t, "the reload keeps the session", 30*time.Second, func() bool { return strings.Contains(m.log.text(), "changed=0 removed=0 kept=1") })
	m.works(t)
	if log := m.log.text(); strings.Contains(log, "T0ken") || strings.Contains(log, "secret-id-1") || strings.Contains(log, "hvs.") {
		t.Errorf("log: %s", log)
	}
	if state := m.Catalog.Upstreams()[0].State; strings.Contains(state.Error, "T0ken") {
		t.Error(state.Error)
	}
}

// TestManagerIsBack: an upstream whose secret cannot be read at the start says why, and works once it can be read.
func TestManagerIsBack(t *testing.T) {
	t.Parallel()
	m := openManaged(t, false)
	_, err := call(t, m.Gateway, "site.tell", `{}`)
	if err == nil {
		t.Fatal("it works without a secret")
	}
	if state := m.Catalog.Upstreams()[0].State; !strings.Contains(state.Error, "upstreams.yaml:2:") || !strings.Contains(state.Error, "${vault:secret/data/site#token}: Vault answers HTTP 503; try again later") {
		t.Error(state.Error)
	}
	m.vault.Fail(0)
	m.works(t)
}
