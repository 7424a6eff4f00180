package checksumfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/checksumfile"
)

func TestSealAndOpen(t *testing.T) {
	for _, body := range []string{"", "x", "{}\n{}\n", strings.Repeat("a\n", 1<<16)} {
		data, err := checksumfile.Encode(3, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := checksumfile.Decode(3, data); err != nil || string(got) != body {
			t.Errorf("%d bytes came back as %d, %v", len(body), len(got), err)
		}
	}
}

func TestDamage(t *testing.T) {
	good, err := checksumfile.Encode(3, []byte("what is known"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "it has no header"},
		"no header":     {[]byte("what is known"), "it has no header"},
		"cut short":     {good[:len(good)-1], "its checksum is wrong"},
		"longer":        {append(bytes.Clone(good), '\n'), "its checksum is wrong"},
		"one bit":       {bytes.Replace(good, []byte("known"), []byte("knowo"), 1), "its checksum is wrong"},
		"other version": {bytes.Replace(good, []byte(`"version":3`), []byte(`"version":4`), 1), "it has version 4, not 3"},
	} {
		if body, err := checksumfile.Decode(3, test.data); err == nil || err.Error() != test.want || body != nil {
			t.Errorf("%s: %q, %v; want %q", name, body, err, test.want)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, _, err := checksumfile.Read(root, "a", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	for _, text := range []string{"one", "another"} {
		if err := checksumfile.Write(root, "a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		data, info, err := checksumfile.Read(root, "a", 10)
		if err != nil || string(data) != text || info.Mode() != 0o600 {
			t.Errorf("%q, %v, %v", data, info, err)
		}
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*.tmp")); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := root.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, limit := range map[string]int64{"pipe": 10, "folder": 1 << 20, "a": 6} {
		if data, _, err := checksumfile.Read(root, name, limit); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if err := checksumfile.Write(root, "folder", []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*.tmp")); len(names) > 0 {
		t.Errorf("left behind after an error: %v", names)
	}
}
