package deps

import (
	"os"
	"path/filepath"
)

// The parsers of hostile input, for the tests that hold them to what they must not do.
var (
	ExplainMissing = explainMissing
	NPMFiles       = npmFiles
)

// Unpacked is what an unpacker leaves and says.
type Unpacked struct {
	Notes []string
	Err   error
}

// UnpackWheel unpacks the bytes of a wheel to dir, with limits.
func UnpackWheel(data []byte, scratch, dir, name, version string, bytes int64, entries int) Unpacked {
	return unpackWith(data, scratch, dir, bytes, entries, func(u *unpacker, path string) error {
		return u.unpackWheel(download{path: path}, name, version)
	})
}

// UnpackTarball does the same with one of npm's, to the folder "pkg".
func UnpackTarball(data []byte, scratch, dir string, bytes int64, entries int) Unpacked {
	return unpackWith(data, scratch, dir, bytes, entries, func(u *unpacker, path string) error {
		return u.unpackTarball(path, "pkg")
	})
}

func unpackWith(data []byte, scratch, dir string, bytes int64, entries int, unpack func(*unpacker, string) error) Unpacked {
	path := filepath.Join(scratch, "archive")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return Unpacked{Err: err}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Unpacked{Err: err}
	}
	defer func() { _ = root.Close() }()
	u := newUnpacker(root, bytes, entries)
	err = unpack(u, path)
	if err == nil {
		err = u.seal()
	}
	return Unpacked{u.notes, err}
}
