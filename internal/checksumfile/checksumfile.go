// Package checksumfile stores data in files with a header line: a version and the
// checksum of the rest, which detects damage. A file is replaced atomically.
package checksumfile

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// header is the first line of a file.
type header struct {
	Version int    `json:"version"`
	Sum     string `json:"sha256"` // of what follows
}

// Encode returns body with a header before it.
func Encode(version int, body []byte) ([]byte, error) {
	head, err := json.Marshal(header{version, checksum(body)})
	if err != nil {
		return nil, fmt.Errorf("seal file: %w", err)
	}
	return slices.Concat(head, []byte("\n"), body), nil
}

// Decode checks data from Seal and returns its body. The version must be the same. An
// error describes what is wrong.
func Decode(version int, data []byte) ([]byte, error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, errors.New("it has no header")
	}
	if h.Version != version {
		return nil, fmt.Errorf("it has version %d, not %d", h.Version, version)
	}
	if checksum(body) != h.Sum {
		return nil, errors.New("its checksum is wrong")
	}
	return body, nil
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Read reads a regular file of at most limit bytes. It does not block on a named pipe.
func Read(root *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, nil, errors.New("it is not a regular file, or too large")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, info, err
}

// Write atomically replaces a file with one that only its owner can read. It is not
// synced: a file that is incomplete after a crash of the machine has a wrong checksum.
func Write(root *os.Root, name string, data []byte) error {
	temp, err := Temp(root, func(w io.Writer) error { _, err := w.Write(data); return err })
	if err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

const tempSuffix = ".tmp"

// Temp creates a file with a unique name, ".….tmp", that only its owner can read, and returns the name.
func Temp(root *os.Root, write func(io.Writer) error) (string, error) {
	name := "." + rand.Text() + tempSuffix
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if err := cmp.Or(write(f), f.Close()); err != nil {
		return "", errors.Join(err, root.Remove(name))
	}
	return name, nil
}
