package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sallyport/internal/seal"
)

// key returns the key of a file with that content.
func key(t *testing.T, content string) (*seal.Key, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "seal.key")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return seal.File(file)
}

func mustKey(t *testing.T, content string) *seal.Key {
	t.Helper()
	k, err := key(t, content)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSeal(t *testing.T) {
	k := mustKey(t, string(seal.Generate()))
	for _, data := range []string{"", "a login", strings.Repeat("x", 1<<20)} {
		sealed := k.Seal([]byte(data), "logins", "github")
		if got, err := k.Open(sealed, "logins", "github"); err != nil || string(got) != data {
			t.Errorf("%d bytes: %d bytes, %v", len(data), len(got), err)
		}
		if data != "" && bytes.Contains(sealed, []byte(data)) {
			t.Error("the data can be read")
		}
		if bytes.Equal(sealed, k.Seal([]byte(data), "logins", "github")) {
			t.Error("two records of the same data are equal")
		}
	}
}

func TestOnlyAtItsPlace(t *testing.T) {
	k := mustKey(t, string(seal.Generate()))
	sealed := k.Seal([]byte("a login"), "logins", "ab", "c")
	for _, place := range [][]string{{"logins", "a", "bc"}, {"logins", "abc"}, {"sessions", "ab", "c"}, {}, {"logins", "ab", "c", ""}} {
		if _, err := k.Open(sealed, place...); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%q: %v", place, err)
		}
	}
}

func TestEveryChangeIsFound(t *testing.T) {
	k := mustKey(t, string(seal.Generate()))
	sealed := k.Seal([]byte("a login"), "logins")
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if data, err := k.Open(changed, "logins"); err == nil {
			t.Errorf("byte %d: %q", i, data)
		}
		if _, err := k.Open(sealed[:i], "logins"); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	changed := bytes.Clone(sealed)
	changed[0] = 2
	if _, err := k.Open(changed, "logins"); !errors.Is(err, seal.ErrNewer) {
		t.Error(err)
	}
}

func TestRotation(t *testing.T) {
	first, second := string(seal.Generate()), string(seal.Generate())
	before := mustKey(t, first)
	sealed := before.Seal([]byte("a login"), "logins")
	if _, err := mustKey(t, second).Open(sealed, "logins"); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
	after := mustKey(t, "# 2026\n"+second+"\n# 2025\n"+first)
	if got, err := after.Open(sealed, "logins"); err != nil || string(got) != "a login" {
		t.Errorf("the older key: %q, %v", got, err)
	}
	if _, err := before.Open(after.Seal([]byte("new"), "logins"), "logins"); !errors.Is(err, seal.ErrOtherKey) {
		t.Errorf("the first line does not seal: %v", err)
	}
	if !after.HasOlder() || before.HasOlder() || after.Sealed(sealed) || !before.Sealed(sealed) || !after.Sealed(after.Seal(nil)) || after.Sealed(nil) {
		t.Error("it is not known which key has sealed a record")
	}
	if before.ID() == after.ID() || strings.Contains(after.String(), strings.TrimSpace(second)) {
		t.Error(before, after)
	}
}

func TestFormats(t *testing.T) {
	raw := bytes.Repeat([]byte{0xfb, 0xff}, seal.Size/2)
	want := mustKey(t, base64.StdEncoding.EncodeToString(raw)).ID()
	for _, text := range []string{base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), "  " + hex.EncodeToString(raw) + "\r\n"} {
		if k, err := key(t, text); err != nil || k.ID() != want {
			t.Errorf("%q: %v, %v", text, k, err)
		}
	}
	for _, text := range []string{"", "# none\n", "short", strings.Repeat("k", 44), base64.StdEncoding.EncodeToString(raw[:31]), string(raw), hex.EncodeToString(raw) + "\nanother line"} {
		_, err := key(t, text)
		if err == nil || !strings.Contains(err.Error(), "seal.key") || !strings.Contains(err.Error(), "32 random bytes") {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && len(text) > 20 && strings.Contains(err.Error(), text) {
			t.Errorf("the error shows the content: %v", err)
		}
	}
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	file := filepath.Join(t.TempDir(), "seal.key")
	if err := os.WriteFile(file, seal.Generate(), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o660: false, 0o604: false, 0o602: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		_, err := seal.File(file)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "chmod 600 "+file) {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	if _, err := seal.File(filepath.Dir(file)); err == nil {
		t.Error("a folder is a key")
	}
}
