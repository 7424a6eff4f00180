//go:build linux

package secret_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sallyport/internal/secret"
)

const inner = "SALLYPORT_TEST_SECRET_INNER"

// The real library on machines without a keyring, each in a process of its own,
// since the library keeps what it once found.
func TestNoKeyring(t *testing.T) {
	if os.Getenv(inner) != "" {
		askWithoutKeyring(t)
		return
	}
	for name, address := range map[string]string{
		"no bus":         "",
		"a dead bus":     "unix:path=/nowhere/bus",
		"a hanging bus":  hangingBus(t),
		"a foreign word": "nonsense",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoKeyring$", "-test.v")
			cmd.Env = append(os.Environ(), inner+"=1", "DBUS_SESSION_BUS_ADDRESS="+address)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func askWithoutKeyring(t *testing.T) {
	t.Helper()
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d", os.Getuid())); err == nil {
			t.Skip("there may be a bus")
		}
	}
	err := secret.Set("a", "s3cret")
	if !errors.Is(err, secret.ErrNoKeyring) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("set: %v", err)
	}
	if strings.Contains(err.Error(), "no answer") {
		return // it takes its time; once is enough
	}
	if err := secret.Delete("a"); !errors.Is(err, secret.ErrNoKeyring) {
		t.Errorf("delete: %v", err)
	}
	if _, err := secret.Get("a"); !errors.Is(err, secret.ErrNoKeyring) {
		t.Errorf("get: %v", err)
	}
}
