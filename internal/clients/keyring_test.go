package clients_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"sallyport/internal/clients"
	"sallyport/internal/secret"
)

// TestKeyring: secrets become names in the keyring, a second import finds them there, another value gets another name,
// and a value that the keyring lost is stored again.
func TestKeyring(t *testing.T) {
	w := newWorld(t, map[string]string{"cursor": servers(stdio("a", "srv-a", "GH_TOKEN", "value-of-a"))})
	w.useKeyring()
	w.want("a=value-of-a", "${keyring:GH_TOKEN}")
	w.clients["windsurf"] = servers(stdio("b", "srv-b", "GH_TOKEN", "value-of-b"))
	w.want("a=value-of-a b=value-of-b", "${keyring:B_GH_TOKEN}")
	w.clients["cursor"] = servers(stdio("a", "srv-a", "GH_TOKEN", "rotated"))
	w.want("a=value-of-a a-cursor=rotated b=value-of-b", "${keyring:A_GH_TOKEN}")
	if err := secret.Delete("A_GH_TOKEN"); err != nil {
		t.Fatal(err)
	}
	w.want("a=value-of-a a-cursor=rotated b=value-of-b", "")
	if got, err := secret.Get("A_GH_TOKEN"); err != nil || got != "rotated" {
		t.Errorf("the value that was lost: %q, %v", got, err)
	}
	if _, err := os.Stat(w.envFile); err == nil {
		t.Error("there is an env file too")
	}
}

// want imports everything twice, and compares.
func (w *world) want(line, reference string) {
	w.t.Helper()
	w.load(true)
	once := w.state()
	if got := w.line(); got != line || !strings.Contains(once, reference) {
		w.t.Fatalf("got %s, want %s with %s in\n%s", got, line, reference, once)
	}
	if w.load(true); w.state() != once {
		w.t.Fatalf("twice is\n%s\nonce is\n%s", w.state(), once)
	}
}

// A reference by hand to the value of a client's server is that server; a keyring that fails has no values.
func TestKeyringByHand(t *testing.T) {
	w := newWorld(t, map[string]string{"cursor": servers(stdio("a", "srv-a", "GH_TOKEN", "value-of-a"))})
	w.useKeyring()
	if err := secret.Set("mine", "value-of-a"); err != nil {
		t.Fatal(err)
	}
	const settings = "upstreams:\n  a: {command: srv-a, env: {GH_TOKEN: \"${keyring:mine}\"}}\n"
	w.write(w.settings, settings)
	if rows := w.load(false); rows[0].Outcome != clients.Existing {
		t.Errorf("a server with a value of the keyring is %s", rows[0].Outcome)
	}
	keyring.MockInitWithError(errors.New("locked"))
	if rows := w.load(false); rows[0].Outcome != clients.Added || rows[0].Name != "a-cursor" {
		t.Errorf("without a keyring, a server with an unknown value is %s as %s", rows[0].Outcome, rows[0].Name)
	}
}
