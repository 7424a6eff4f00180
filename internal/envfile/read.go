package envfile

import (
	"errors"
	"io"
	"os"
	"runtime"

	"sallyport/internal/yamlstrict"
)

// ErrPublic is the error for a file that others on the machine can read.
var ErrPublic = errors.New("others can read it")

// Read reads and parses a file, see [ReadPrivate] and [Parse].
func Read(path string) (map[string]string, error) {
	data, err := ReadPrivate(path)
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// ReadPrivate reads a regular file of at most 1 MiB that only its owner can read. It checks the type before it opens the file, as opening a pipe would block.
func ReadPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, ErrPublic
	}
	data, err := io.ReadAll(io.LimitReader(f, yamlstrict.MaxFile+1))
	if err == nil && len(data) > yamlstrict.MaxFile {
		err = errors.New("it is larger than 1 MiB")
	}
	return data, err
}
