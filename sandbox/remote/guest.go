package remote

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// digest returns the digest of a guest's files.
func digest(tree fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, path)
		fmt.Fprintf(sum, "%d %s %d ", len(path), path, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("digest guest: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// maxGuest is the maximum size of the files of a guest, in bytes.
const maxGuest = 16 << 20

// writeGuest writes the files of a guest: a length and an archive without compression.
func writeGuest(w io.Writer, tree fs.FS) error {
	var data bytes.Buffer
	archive := zip.NewWriter(&data)
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		file, err := archive.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Store})
		if err == nil {
			_, err = file.Write(content)
		}
		return err
	})
	if err = errors.Join(err, archive.Close()); err != nil {
		return fmt.Errorf("pack guest: %w", err)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint64(nil, uint64(data.Len())), data.Bytes()...))
	return err
}

// readGuest reads what writeGuest wrote. The files must have a digest.
func readGuest(r io.Reader, want string) (fs.FS, error) {
	data, err := readPart(r, maxGuest)
	if err != nil {
		return nil, fmt.Errorf("read guest: %w", err)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("read guest: %w", err)
	}
	size := uint64(0)
	for _, file := range archive.File {
		if size += file.CompressedSize64; file.Method != zip.Store || !fs.ValidPath(file.Name) || file.CompressedSize64 > maxGuest || size > maxGuest {
			return nil, fmt.Errorf("read guest: the file %.80q is invalid", file.Name)
		}
	}
	if got, err := digest(archive); err != nil || got != want {
		return nil, errors.Join(errors.New("read guest: the files are not those of the gateway"), err)
	}
	return archive, nil
}
