package secret_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zalando/go-keyring"

	"sallyport/internal/secret"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ name, content, want, err string }{
		{"plain", "s3cret", "s3cret", ""},
		{"newline", "s3cret\n", "s3cret", ""},
		{"windows", "s3cret\r\n", "s3cret", ""},
		{"only one newline goes", "s3cret\n\n", "s3cret\n", ""},
		{"space stays", " s3cret ", " s3cret ", ""},
		{"as large as may be", strings.Repeat("x", secret.MaxSize), strings.Repeat("x", secret.MaxSize), ""},
		{"too large", strings.Repeat("x", secret.MaxSize+1), "", "larger than 64 KiB"},
		{"empty", "", "", "is empty"},
		{"nothing but a newline", "\n", "", "is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(dir, test.name)
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := secret.File(path)
			if got != test.want {
				t.Errorf("got %.40q, want %.40q", got, test.want)
			}
			wantText(t, err, test.err, path)
		})
	}
}

func TestFileOfAnotherKind(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pipe} {
		_, err := secret.File(path)
		wantText(t, err, "not a regular file", path)
	}
	if _, err := secret.File(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// The library's own keyring in memory takes the place of the system's.
func TestKeyring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/not/used")
	keyring.MockInit()
	for _, size := range []int{1, 1800, 1801, 3600, 20_000, secret.MaxSize, 7} {
		value := strings.Repeat("0123456", size/7+1)[:size]
		if err := secret.Set("tickets", value); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got, err := secret.Get("tickets"); err != nil || got != value {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
	if err := secret.Delete("tickets"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{secret.Delete("tickets"), second(secret.Get("tickets"))} {
		if !errors.Is(err, secret.ErrNotFound) {
			t.Errorf("after it was deleted: %v", err)
		}
	}
}

func TestKeyringValueThatLooksLikeParts(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/not/used")
	keyring.MockInit()
	const value = "sallyport-parts:OTHER:1"
	if err := secret.Set("a", value); err != nil {
		t.Fatal(err)
	}
	if got, err := secret.Get("a"); got != value || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKeyringTornValue(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/not/used")
	keyring.MockInit()
	if err := keyring.Set("sallyport", "a", "sallyport-parts:X:2"); err != nil {
		t.Fatal(err)
	}
	if _, err := secret.Get("a"); !errors.Is(err, secret.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if err := secret.Set("a", "new"); err != nil {
		t.Fatal(err)
	}
	if got, err := secret.Get("a"); got != "new" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKeyringRefuses(t *testing.T) {
	for _, name := range []string{"", "a b", "a#X.0", "../a", strings.Repeat("x", 129)} {
		wantText(t, second(secret.Get(name)), "cannot be a name")
	}
	err := secret.Set("a", strings.Repeat("s", secret.MaxSize+1))
	wantText(t, err, "from 1 to 64 KiB")
	wantText(t, secret.Set("a", ""), "from 1 to 64 KiB")
}

func second(_ string, err error) error { return err }

func wantText(t *testing.T, err error, texts ...string) {
	t.Helper()
	if texts[0] == "" {
		if err != nil {
			t.Errorf("error: %v", err)
		}
		return
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}
}

// A bus that accepts and never speaks: the calls end by their time limit. The
// library's lock stays taken, so this runs in a process of its own.
func hangingBus(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return "unix:path=" + path
}
