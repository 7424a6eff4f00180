package oauth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/secret"
)

func (w *world) files() []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestStoreKeyring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/not/used")
	keyring.MockInit()
	for _, kind := range []string{"auto", "keyring", ""} {
		w := newWorld(t, nil, nil)
		use := func(s *oauth.Settings) { s.Store = kind }
		h := w.handler(use)
		w.login(h)
		w.callEcho(w.handler(use))
		w.as.RevokeAccess()
		w.callEcho(w.handler(use))
		w.callEcho(h)
		w.count("refresh_token", 1)
		if text := w.readStored(); strings.Contains(text, "secret") || strings.Contains(text, *w.rs.Token.Load()) {
			t.Errorf("%q: the file holds secrets:\n%s", kind, text)
		}
		if status, err := h.Status(); err != nil || status.Store != "keyring" {
			t.Errorf("%q: status %+v, %v", kind, status, err)
		}
		item := "oauth/" + strings.TrimSuffix(filepath.Base(w.file()), ".json")
		if _, err := secret.Get(item); err != nil {
			t.Error(err)
		}
		if was, revoked, err := h.Logout(t.Context()); !was || !revoked || err != nil {
			t.Errorf("logout: %v %v %v", was, revoked, err)
		}
		if _, err := secret.Get(item); !errors.Is(err, secret.ErrNotFound) {
			t.Errorf("after logout: %v", err)
		}
	}
}

func TestStoreWithoutKeyring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
	keyring.MockInitWithError(errors.New("nobody there"))
	w := newWorld(t, nil, nil)
	auto := w.handler(func(s *oauth.Settings) { s.Store = "auto" })
	w.login(auto)
	w.callEcho(auto)
	if status, err := auto.Status(); err != nil || status.Store != "file" {
		t.Errorf("status %+v, %v", status, err)
	}
	err := w.handler(func(s *oauth.Settings) { s.Store = "keyring" }).Login(t.Context(), oauth.Login{Paste: strings.NewReader("")})
	wantText(t, err, "no URL was pasted") // it gets that far, and stores nothing
}

func TestStoreOpenToOthers(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	file := w.file()
	for _, test := range []struct {
		path string
		mode os.FileMode
		fix  string
	}{
		{file, 0o644, "chmod 600 " + file},
		{file, 0o640, "chmod 600 " + file},
		{w.dir, 0o755, "chmod 700 " + w.dir},
	} {
		before, err := os.Stat(test.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(test.path, test.mode); err != nil {
			t.Fatal(err)
		}
		for name, h := range map[string]*oauth.Handler{"old": h, "new": w.handler(nil)} {
			_, err := h.Token(t.Context())
			if name == "new" || test.path == file {
				wantText(t, err, "read tokens: ", test.fix)
			}
			_, err = h.Status()
			wantText(t, err, test.fix)
		}
		if err := os.Chmod(test.path, before.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	w.callEcho(h)
}

func TestStoreDamaged(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello", "cut": `{"version": 1, "upstr`, "other version": `{"version": 2}`, "null": "null"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, nil)
			h := w.handler(nil)
			w.login(h)
			w.restore(text)
			_, err := h.Token(t.Context())
			wantLogin(t, err, "the stored login is", "run `sallyport auth login tickets`")
			if was, _, err := h.Logout(t.Context()); !was || err != nil {
				t.Errorf("logout: %v", err)
			}
			w.login(h)
			w.callEcho(h)
		})
	}
}

func TestStoreIsNoLink(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	w.login(h)
	file, elsewhere := w.file(), filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Rename(file, elsewhere), os.Symlink(elsewhere, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.handler(nil).Token(t.Context()); err == nil {
		t.Error("a link was followed")
	}
}

func TestLogout(t *testing.T) {
	w := newWorld(t, nil, nil)
	h := w.handler(nil)
	if was, revoked, err := h.Logout(t.Context()); was || revoked || err != nil {
		t.Errorf("before a login: %v %v %v", was, revoked, err)
	}
	w.login(h)
	w.callEcho(h)
	token := *w.rs.Token.Load()
	if was, revoked, err := h.Logout(t.Context()); !was || !revoked || err != nil {
		t.Errorf("logout: %v %v %v", was, revoked, err)
	}
	if _, err := w.as.Verify(t.Context(), token); err == nil {
		t.Error("the token is still good")
	}
	w.count("revoke", 2)
	if left := w.files(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	_, err := w.connect(h)
	wantLogin(t, err, "login required")
}

func TestDir(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/s/sallyport/auth":              {"XDG_STATE_HOME": "/s", "HOME": "/h"},
		"/h/.local/state/sallyport/auth": {"XDG_STATE_HOME": "relative", "HOME": "/h"},
		"":                               {},
	} {
		got := oauth.Dir(func(name string) (string, bool) { value, ok := env[name]; return value, ok })
		if got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}
