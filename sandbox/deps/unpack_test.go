package deps_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/sandbox/deps"
)

// place is a folder to unpack to, within one that nothing may be written to.
func place(t testing.TB) (around, dir string) {
	t.Helper()
	around = t.TempDir()
	dir = filepath.Join(around, "layer")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { openAgain(dir) })
	return around, dir
}

func openAgain(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
}

// found lists the files below dir, and reports whatever is not as files of a layer have to be.
func found(t testing.TB, around, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(around, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == around || path == dir {
			return nil
		}
		name, below := strings.CutPrefix(path, dir+"/")
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case !below:
			t.Errorf("%s was written outside of the layer", path)
		case !info.IsDir() && !info.Mode().IsRegular():
			t.Errorf("%s is %v", name, info.Mode())
		case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 || !info.IsDir() && info.Mode()&0o222 != 0 || info.Mode()&0o022 != 0:
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
		if !info.IsDir() {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestUnpackWheel has what attack L08 is about, case by case.
func TestUnpackWheel(t *testing.T) {
	const good = "x/__init__.py"
	ok := member{good, "1\n"}
	for name, test := range map[string]struct {
		wheel []byte
		want  []string // files beside x/__init__.py and those of the metadata; nil: refused
		note  string
	}{
		"good":                   {wheelOf("x", "1.0", nil, ok), []string{}, ""},
		"traversal":              {wheelOf("x", "1.0", nil, ok, member{"../../x", "1"}), nil, ""},
		"traversal inside":       {wheelOf("x", "1.0", nil, ok, member{"x/../../y", "1"}), nil, ""},
		"traversal in data":      {wheelOf("x", "1.0", nil, ok, member{"x-1.0.data/purelib/../../y", "1"}), nil, ""},
		"absolute":               {wheelOf("x", "1.0", nil, ok, member{"/tmp/x", "1"}), nil, ""},
		"backslash":              {wheelOf("x", "1.0", nil, ok, member{`..\x`, "1"}), nil, ""},
		"escape":                 {wheelOf("x", "1.0", nil, ok, member{"x/\x1b[2J", "1"}), nil, ""},
		"RECORD differs":         {wheelOf("x", "1.0", nil, ok, member{"WRONG:x/a.py", "1"}), nil, ""},
		"not in RECORD":          {wheelOf("x", "1.0", nil, ok, member{"UNLISTED:x/a.py", "1"}), nil, ""},
		"no RECORD":              {zipOf(ok), nil, ""},
		"another's metadata":     {wheelOf("y", "1.0", nil, ok), nil, ""},
		"another version":        {wheelOf("x", "1.1", nil, ok), nil, ""},
		"twice":                  {wheelOf("x", "1.0", nil, ok, ok), nil, ""},
		"file and folder":        {wheelOf("x", "1.0", nil, ok, member{"x", "1"}), []string{}, "x is left out"},
		"no zip":                 {[]byte("PK\x03\x04 and then nothing"), nil, ""},
		"pth":                    {wheelOf("x", "1.0", nil, ok, member{"x.pth", "import os; os.system('id')\n"}), []string{}, "x.pth is left out"},
		"pth in data":            {wheelOf("x", "1.0", nil, ok, member{"x-1.0.data/purelib/x.pth", "import os\n"}), []string{}, "x.pth is left out"},
		"scripts":                {wheelOf("x", "1.0", nil, ok, member{"x-1.0.data/scripts/ls", "#!/bin/sh\n"}), []string{}, ""},
		"etc":                    {wheelOf("x", "1.0", nil, ok, member{"x-1.0.data/data/etc/passwd", "1"}), []string{}, "left out"},
		"platlib":                {wheelOf("x", "1.0", nil, ok, member{"x-1.0.data/platlib/y.py", "1"}), []string{"y.py"}, ""},
		"shadows json":           {wheelOf("x", "1.0", nil, ok, member{"json/__init__.py", "1"}), []string{}, "module json is left out"},
		"shadows asyncio":        {wheelOf("x", "1.0", nil, ok, member{"asyncio.py", "1"}), []string{}, "module asyncio is left out"},
		"shadows by extension":   {wheelOf("x", "1.0", nil, ok, member{"socket.cpython-311-x86_64-linux-gnu.so", "1"}), []string{}, "module socket is left out"},
		"shadows servers":        {wheelOf("x", "1.0", nil, ok, member{"servers/x.py", "1"}), []string{}, "module servers is left out"},
		"shadows sallyport":      {wheelOf("x", "1.0", nil, ok, member{"x-1.0.data/purelib/sallyport/x.py", "1"}), []string{}, "module sallyport is left out"},
		"symlink":                {symlinkTarball(t), nil, ""},
		"larger than it may be":  {wheelOf("x", "1.0", nil, ok, member{"x/big", strings.Repeat("0", 2<<20)}), nil, ""},
		"more than may be there": {wheelOf("x", "1.0", nil, append(many(200), ok)...), nil, ""},
	} {
		around, dir := place(t)
		got := deps.UnpackWheel(test.wheel, t.TempDir(), dir, "x", "1.0", 1<<20, 100)
		files := slices.DeleteFunc(found(t, around, dir), func(file string) bool { return strings.HasPrefix(file, "x-1.0.dist-info/") })
		if test.want == nil {
			if !errors.Is(got.Err, deps.ErrUnsafe) && !errors.Is(got.Err, deps.ErrLimit) {
				t.Errorf("%s: it was unpacked: %v, %v", name, files, got.Err)
			}
			continue
		}
		want := append([]string{good}, test.want...)
		slices.Sort(want)
		if got.Err != nil || !slices.Equal(files, want) || !strings.Contains(strings.Join(got.Notes, "\n"), test.note) {
			t.Errorf("%s: it leaves %q, want %q; %v, %q", name, files, want, got.Err, got.Notes)
		}
	}
}

func many(n int) []member {
	var all []member
	for i := range n {
		all = append(all, member{"x/" + strings.Repeat("m", i+1), "1"})
	}
	return all
}

// symlinkTarball is a wheel with a link to /etc in it.
func symlinkTarball(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	header := &zip.FileHeader{Name: "x/link"}
	header.SetMode(fs.ModeSymlink | 0o777)
	f, err := w.CreateHeader(header)
	if err == nil {
		_, err = f.Write([]byte("/etc"))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpackTarball(t *testing.T) {
	var odd bytes.Buffer
	zipped := gzip.NewWriter(&odd)
	w := tar.NewWriter(zipped)
	for _, header := range []tar.Header{
		{Name: "package/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		{Name: "package/link/passwd", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "package/hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		{Name: "package/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		{Name: "package/fifo", Typeflag: tar.TypeFifo},
		{Name: "package/setuid", Typeflag: tar.TypeReg, Mode: 0o6777},
		{Name: "package/bin/run", Typeflag: tar.TypeReg, Mode: 0o755},
	} {
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.Close(), zipped.Close()
	for name, test := range map[string]struct {
		data []byte
		want []string // nil: refused
	}{
		"good":        {tgzOf(member{"package/package.json", "{}"}, member{"package/lib/a.js", "1"}), []string{"pkg/lib/a.js", "pkg/package.json"}},
		"odd members": {odd.Bytes(), []string{"pkg/bin/run", "pkg/link/passwd", "pkg/setuid"}},
		"traversal":   {tgzOf(member{"package/../../x", "1"}), nil},
		"dots":        {tgzOf(member{"./package/./lib/./a.js", "1"}), []string{"pkg/lib/a.js"}},
		"absolute":    {tgzOf(member{"/etc/x", "1"}), []string{"pkg/etc/x"}}, // the first part of a name never counts
		"no folder":   {tgzOf(member{"x", "1"}), nil},
		"too large":   {tgzOf(member{"package/x", strings.Repeat("0", 2<<20)}), nil},
		"no gzip":     {[]byte("nothing"), nil},
	} {
		around, dir := place(t)
		got := deps.UnpackTarball(test.data, t.TempDir(), dir, 1<<20, 100)
		files := found(t, around, dir)
		if refused := errors.Is(got.Err, deps.ErrUnsafe) || errors.Is(got.Err, deps.ErrLimit); refused != (test.want == nil) {
			t.Errorf("%s: %v", name, got.Err)
		} else if !refused && !slices.Equal(files, test.want) {
			t.Errorf("%s: it leaves %q, want %q; %v", name, files, test.want, got.Err)
		}
	}
}

// FuzzUnpack: whatever an archive says, nothing is written outside of the layer, nothing but
// regular files, and no more than the limits.
func FuzzUnpack(f *testing.F) {
	f.Add(wheelOf("x", "1.0", nil, member{"x/__init__.py", "1\n"}, member{"../y", "1"}))
	f.Add(wheelOf("x", "1.0", nil, member{"x-1.0.data/purelib/y.py", "1\n"}, member{"x.pth", "import os"}))
	f.Add(tgzOf(member{"package/package.json", "{}"}, member{"package/../x", "1"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		around, dir := place(t)
		deps.UnpackWheel(data, t.TempDir(), dir, "x", "1.0", 4096, 20)
		deps.UnpackTarball(data, t.TempDir(), dir, 4096, 20)
		var size int64
		for _, file := range found(t, around, dir) {
			if info, err := os.Lstat(filepath.Join(dir, file)); err == nil {
				size += info.Size()
			}
		}
		if size > 2*(4096+1) {
			t.Errorf("%d bytes were written", size)
		}
	})
}
