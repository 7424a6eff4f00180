// Package checksumfile keeps what a process knows in files that others may damage: the
// first line of one says its version and the checksum of the rest. A file is
// replaced as a whole, so that the old one or the new one exists at any moment.
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

// Seal puts the header before body.
func Seal(version int, body []byte) ([]byte, error) {
	head, err := json.Marshal(header{version, checksum(body)})
	if err != nil {
		return nil, fmt.Errorf("seal file: %w", err)
	}
	return slices.Concat(head, []byte("\n"), body), nil
}

// Open returns the body of what Seal made of the same version. An error says
// what is wrong with the file.
func Open(version int, data []byte) ([]byte, error) {
	head, body, _ := bytes.Cut(data, []byte("\n"))
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, errors.New("it has no header")
	}
	if h.Version != version {
		return nil, fmt.Errorf("it is of version %d, not %d", h.Version, version)
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

// Read reads a regular file of at most limit bytes. A pipe in its place is not waited for.
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
		return nil, nil, errors.New("it is no file of ours")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, info, err
}

// Write replaces a file by one that only its owner can read. It is not synced:
// what a crash of the machine cuts short has a wrong checksum.
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

// Temp makes a file with a name of its own, ".….tmp", that only its owner can read.
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
