package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/backup"
)

// TestRoundTrip: what was written is read back, with its bytes and whether it can be run, and without what is no plain file.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	data, records := t.TempDir(), t.TempDir()
	files := map[string]string{"workspaces/ada/default/a b.txt": "text", "workspaces/ada/default/deep/er/é.bin": "\x00\xff", "skills/x/SKILL.md": "", "records/new": "not this"}
	for name, text := range files {
		put(t, data, name, text)
	}
	put(t, records, "streams/1.blk", strings.Repeat("x", 100_000))
	if err := os.MkdirAll(filepath.Join(data, "workspaces/bob/default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Join(data, "skills/x/SKILL.md"), 0o755), os.Symlink("/etc/passwd", filepath.Join(data, "link"))); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	summary, err := backup.Write(t.Context(), &out, []backup.Source{{Dir: data, Without: []string{"records"}}, {Dir: records, As: "records"}, {Dir: filepath.Join(data, "nothing"), As: "x"}})
	if err != nil || summary.Files != 4 || summary.Bytes != 100_006 || strings.Join(summary.Skipped, " ") != "link" {
		t.Fatalf("%+v, %v", summary, err)
	}
	dir := filepath.Join(t.TempDir(), "not", "there")
	restored, err := backup.Restore(t.Context(), bytes.NewReader(out.Bytes()), dir, nil)
	if err != nil || restored.Files != 4 || restored.Bytes != summary.Bytes {
		t.Fatalf("%+v, %v", restored, err)
	}
	delete(files, "records/new")
	files["records/streams/1.blk"] = strings.Repeat("x", 100_000)
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	modes := map[string]fs.FileMode{"skills/x/SKILL.md": 0o700, "workspaces/ada/default/a b.txt": 0o600, "workspaces/bob/default": fs.ModeDir | 0o700, ".": fs.ModeDir | 0o700}
	for name, mode := range modes {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := backup.Restore(t.Context(), bytes.NewReader(out.Bytes()), dir, nil); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("a second time: %v", err)
	}
	for _, cut := range []int{0, 1, 100, out.Len() / 2, out.Len() - 1} {
		wantRefused(t, out.Bytes()[:cut], backup.ErrNotBackup, nil)
	}
	flipped := bytes.Clone(out.Bytes())
	flipped[out.Len()-6] ^= 1 // in the check sum
	wantRefused(t, flipped, backup.ErrNotBackup, nil)
	wantRefused(t, out.Bytes(), backup.ErrTooLarge, &backup.Limits{Bytes: 100_005})
	wantRefused(t, out.Bytes(), backup.ErrTooLarge, &backup.Limits{Entries: 5})
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// wantRefused restores to an empty folder, and looks whether all around it is as it was.
func wantRefused(t testing.TB, archive []byte, want error, limits *backup.Limits) {
	t.Helper()
	around := t.TempDir()
	dir := filepath.Join(around, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := backup.Restore(t.Context(), bytes.NewReader(archive), dir, limits)
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	onlyEmpty(t, around)
}

func onlyEmpty(t testing.TB, around string) {
	t.Helper()
	var found []string
	if err := filepath.WalkDir(around, func(path string, _ fs.DirEntry, err error) error { found = append(found, path); return err }); err != nil {
		t.Error(err)
	}
	if len(found) != 2 { // around and data
		t.Errorf("left behind: %q", found[2:])
	}
}

// packArchive is an archive as somebody could make it.
func packArchive(entries ...tar.Header) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	mark := "sallyport backup 1\n"
	for _, h := range append([]tar.Header{{Name: ".sallyport-backup", Size: int64(len(mark)), Typeflag: tar.TypeReg}}, entries...) {
		if w.WriteHeader(&h) != nil {
			continue // Go refuses to write it
		}
		text := strings.Repeat("x", int(min(h.Size, 1<<20)))
		if h.Name == ".sallyport-backup" {
			text = mark
		}
		_, _ = io.WriteString(w, text)
	}
	_, _, _ = w.Flush(), w.Close(), zipped.Close()
	return out.Bytes()
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1, Mode: 0o4777}
	}
	for name, entries := range map[string][]tar.Header{
		"absolute":        {file("/tmp/sallyport-escaped")},
		"above":           {file("../escaped")},
		"above by a way":  {file("a/../../escaped")},
		"not clean":       {file("a//b")},
		"dot":             {file("./a")},
		"itself":          {{Name: "./", Typeflag: tar.TypeDir}},
		"above, a folder": {{Name: "../up/", Typeflag: tar.TypeDir}},
		"symlink":         {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, file("a/escaped")},
		"hard link":       {{Name: "a", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"device":          {{Name: "a", Typeflag: tar.TypeBlock, Devmajor: 8}},
		"character":       {{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"pipe":            {{Name: "a", Typeflag: tar.TypeFifo}},
		"twice":           {file("a"), file("a")},
		"file as folder":  {file("a"), file("a/b")},
		"deep":            {file(strings.Repeat("a/", 64) + "a")},
		"long":            {file(strings.Repeat("abc/", 1100) + "a")},
		"no text":         {file("a\xff")},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, packArchive(entries...), backup.ErrUnsafe, nil) })
	}
	if _, err := os.Lstat("/tmp/sallyport-escaped"); err == nil {
		t.Error("it got out")
	}
}

// FuzzRestore: whatever the archive, nothing is made but plain files and folders of the owner's, under the directory, within the limits; or nothing.
func FuzzRestore(f *testing.F) {
	f.Add(packArchive(tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 3}), true)
	f.Add(packArchive(tar.Header{Name: "../b", Typeflag: tar.TypeReg, Size: 3}, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/"}), true)
	f.Add(unzip(f, packArchive(tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 3}, tar.Header{Name: "a/", Typeflag: tar.TypeDir})), false)
	f.Add(unzip(f, packArchive(tar.Header{Name: "é", Typeflag: tar.TypeReg, Size: 3, PAXRecords: map[string]string{"GNU.sparse.major": "1"}})), false)
	f.Fuzz(func(t *testing.T, archive []byte, whole bool) {
		if !whole { // the fuzzer finds its way into the tar only if it need not zip
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			_, _ = w.Write(archive)
			_ = w.Close()
			archive = out.Bytes()
		}
		around := t.TempDir()
		dir := filepath.Join(around, "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		limits := backup.Limits{Bytes: 1 << 20, Entries: 100}
		if _, err := backup.Restore(t.Context(), bytes.NewReader(archive), dir, &limits); err != nil {
			onlyEmpty(t, around)
			return
		}
		var total int64
		err := filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if path != around && path != dir && !strings.HasPrefix(path, dir+"/") || !info.IsDir() && !info.Mode().IsRegular() || path != around && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%q is %v", path, info.Mode())
			}
			if info.Mode().IsRegular() {
				total += info.Size()
			}
			return nil
		})
		if err != nil || total > limits.Bytes {
			t.Errorf("%d bytes, %v", total, err)
		}
	})
}

func unzip(f *testing.F, archive []byte) []byte {
	f.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		f.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	return data
}
