// Package secret reads secrets from files and from the keyring of the operating system. It logs nothing, and its
// errors contain no value.
package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxSize bounds a secret, in bytes.
const MaxSize = 64 << 10

// File returns the content of a file, without one newline at its end. It must be a regular, non-empty file of at most
// [MaxSize] bytes. Errors contain the path and wrap those of os.
func File(path string) (string, error) {
	value, err := readFile(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("read secret: %w", err)
	case len(value) > MaxSize:
		return "", fmt.Errorf("read secret: %s is larger than %d KiB", path, MaxSize>>10)
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	if len(value) == 0 {
		return "", fmt.Errorf("read secret: %s is empty", path)
	}
	return string(value), nil
}

// readFile checks the file type before it opens the file, as opening a pipe would block.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

var errNotRegular = errors.New("not a regular file")
