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

	"sallyport/internal/sanitize"
)

// Compat says with which builds a build can work: a gateway and a worker speak the newest version of the protocol that both know. They may
// have different files of guests, which the gateway then sends to the worker.
type Compat struct {
	// Oldest is the oldest version of the protocol that the side speaks, Newest the newest; 0 is Oldest, as builds say that speak one.
	Oldest int `json:"protocol"`
	Newest int `json:"newest,omitempty"`
	// Host is the version of what a host and the files of a guest expect of each other.
	Host int `json:"host_interface,omitempty"`
}

const (
	// oldestProtocol is the oldest version of the protocol that this build speaks, that of the release before, and newestProtocol the
	// newest. A change of messages raises newestProtocol: what is new is sent only to a side that speaks it.
	oldestProtocol = 2
	newestProtocol = 3
	// guestProtocol is the first version of the protocol in which the gateway sends the files of guests.
	guestProtocol = 3
	// hostInterface rises when a host needs other files of guests than before, or they need another host: see TestGuestFiles.
	hostInterface = 1
)

// Here returns what this build can work with.
func Here() Compat {
	return Compat{Oldest: oldestProtocol, Newest: newestProtocol, Host: hostInterface}
}

var (
	errOlderThere = errors.New("it is older")
	errOlderHere  = errors.New("it is newer")
)

// Agree returns the version of the protocol that both sides speak, or an error if there is none.
func (here Compat) Agree(there Compat) (version int, err error) {
	switch newest := max(there.Oldest, there.Newest); {
	case newest < here.Oldest:
		return 0, errOlderThere
	case here.Newest < there.Oldest:
		return 0, errOlderHere
	default:
		return min(here.Newest, newest), nil
	}
}

// WorksWith reports whether a worker that speaks this may run programs of a gateway that speaks there with other files of guests.
func (here Compat) WorksWith(there Compat) bool {
	version, err := here.Agree(there)
	return err == nil && version >= guestProtocol && here.Host == there.Host
}

// agree returns the version of the protocol that both sides speak, and whether the gateway sends the files of its guests; or an error that
// says what to do. here is this side.
func (here greeting) agree(there greeting) (version int, sendGuest bool, err error) {
	theirs, other := sanitize.Line(there.Version, 60), there.name()
	version, err = here.Agree(there.Compat)
	sendGuest = here.Guest != there.Guest
	if err == nil && sendGuest && version >= guestProtocol {
		err = here.compareHosts(there)
	}
	switch {
	case errors.Is(err, errOlderThere):
		return 0, false, fmt.Errorf("the %s's sallyport (%s) is older than the %s's (%s): update it there", other, theirs, here.name(), here.Version)
	case errors.Is(err, errOlderHere):
		return 0, false, fmt.Errorf("the %s's sallyport (%s) is older than the %s's (%s): update it here", here.name(), here.Version, other, theirs)
	case sendGuest && version < guestProtocol:
		return 0, false, fmt.Errorf("sallyport is not the same on both machines (%s at the %s, %s at the %s): install the same build on both", here.Version, here.name(), theirs, other)
	}
	return version, sendGuest, nil
}

// compareHosts returns which side is older if the host of one cannot run guests of the other.
func (here greeting) compareHosts(there greeting) error {
	switch {
	case there.Host < here.Host:
		return errOlderThere
	case there.Host > here.Host:
		return errOlderHere
	}
	return nil
}

func (here greeting) name() string {
	if here.Sallyport == "gateway" {
		return "gateway"
	}
	return "worker"
}

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
