package envfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"sallyport/internal/sanitize"
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

// Message returns what is wrong with the file of an error, and what to do. The file is as a person knows it.
func Message(file string, err error) string {
	file = sanitize.Line(file, 300)
	if e, ok := errors.AsType[*LineError](err); ok {
		return fmt.Sprintf("%s:%d: %s", file, e.Line, e.Message)
	}
	switch {
	case errors.Is(err, ErrPublic):
		return fmt.Sprintf("others can read %s; run: chmod 600 %[1]s", file)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %s; correct the path, which starts at the directory of this file, or remove the key", file)
	}
	why := err
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		why = pathErr.Err
	}
	return fmt.Sprintf("%s cannot be read: %s", file, sanitize.Line(why.Error(), 200))
}
