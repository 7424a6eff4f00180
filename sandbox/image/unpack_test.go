package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack: whatever layers are made of, nothing outside of their directory is touched, and in
// it are files, folders and links, for everybody to read.
func FuzzUnpack(f *testing.F) {
	for _, seed := range [][2][]byte{
		{layerOf(f, entry{name: "a/b", body: "x"}, entry{name: "l", link: "/etc", kind: tar.TypeSymlink}), layerOf(f, entry{name: "l/x", body: "y"}, entry{name: "a/.wh.b"})},
		{layerOf(f, entry{name: "up", link: "..", kind: tar.TypeSymlink}, entry{name: "up/outside", body: "x"}), layerOf(f, entry{name: "up/.wh..wh..opq"}, entry{name: "h", link: "up/outside", kind: tar.TypeLink})},
		{layerOf(f, entry{name: "../outside", body: "x"}), layerOf(f, entry{name: "d/", kind: tar.TypeDir}, entry{name: "d/h", link: "../outside", kind: tar.TypeLink}, entry{name: "d/.wh..wh..opq"})},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		outer := t.TempDir()
		outside, dir := filepath.Join(outer, "outside"), filepath.Join(outer, "root")
		if err := os.WriteFile(outside, []byte("as it was"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := &unpacker{root: root, limits: Limits{Bytes: 1 << 20, Entries: 1000, Ratio: 10}}
		for _, layer := range [][]byte{first, second} {
			_ = u.unpack(t.Context(), bytes.NewReader(layer), 1)
		}
		tree(t, dir)
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 2 {
			t.Fatalf("beside the root: %v, %v", entries, err)
		}
		if data, err := os.ReadFile(outside); err != nil || string(data) != "as it was" {
			t.Fatalf("outside: %q, %v", data, err)
		}
		if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("outside: %v, %v", info, err)
		}
	})
}

// TestUnpackSparse: a file of holes counts as what it is read as. These have 1 TB (tar -S).
func TestUnpackSparse(t *testing.T) {
	for _, format := range []string{"gnu", "posix"} {
		f, err := os.Open("testdata/sparse-" + format + ".tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		layer, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := &unpacker{root: root, limits: DefaultLimits()}
		if err := u.unpack(t.Context(), layer, 200); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", format, err)
		}
		if len(tree(t, root.Name())) > 0 {
			t.Errorf("%s: written all the same", format)
		}
	}
}
