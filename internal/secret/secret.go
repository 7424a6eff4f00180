// Package secret reads secrets from where they lie: from files, and from the
// keyring of the operating system. Nothing in it logs, and no error of it holds
// a value.
package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxSize bounds a secret, in bytes, wherever it lies.
const MaxSize = 64 << 10

// File returns what a file holds, without one newline at its end. It must be a
// regular file with something in it, at most [MaxSize] bytes. Errors name the
// path and wrap those of os.
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

// readFile looks before it opens, for opening a pipe would wait for its writer.
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
