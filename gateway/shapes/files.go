package shapes

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
	"time"

	"sallyport/internal/filelock"
)

const (
	// fileVersion changes when a file of another version would be misread.
	fileVersion = 1
	// maxFile bounds one file, in bytes.
	maxFile = 8 << 20
	suffix  = ".shapes"
	// lockPatience is how long another process may change a file.
	lockPatience = 2 * time.Second
)

// Files is a [Keeper] that keeps one file per upstream in a directory, for its
// owner's eyes only. Processes may share the directory. Close it.
type Files struct {
	dir  string
	root *os.Root
}

var _ Keeper = (*Files)(nil)

// OpenFiles makes the directory if it is not there.
func OpenFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Files{dir: dir, root: root}, nil
}

// Close releases the directory.
func (f *Files) Close() error { return f.root.Close() }

// header is the first line of a file; what is known follows.
type header struct {
	Version int    `json:"version"`
	Sum     string `json:"sha256"` // of what follows
}

// Load reads what is known of an upstream. An error says that there is a file and
// that it is of no use; nothing is known then.
func (f *Files) Load(upstream string) (Known, error) {
	data, err := f.read(upstream + suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return Known{}, nil
	}
	if err != nil {
		return Known{}, err
	}
	head, body, _ := bytes.Cut(data, []byte("\n"))
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return Known{}, errors.New("it has no header")
	}
	if h.Version != fileVersion {
		return Known{}, fmt.Errorf("it is of version %d, not %d", h.Version, fileVersion)
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != h.Sum {
		return Known{}, errors.New("its checksum is wrong")
	}
	known := Known{}
	if err := json.Unmarshal(body, &known); err != nil || known == nil {
		return Known{}, errDamaged
	}
	return known, nil
}

func (f *Files) read(name string) ([]byte, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place is not waited for
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errors.New("it is no file of ours")
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Merge adds what was learned to what is kept, and returns both. A file that is
// of no use is begun anew. An error says that nothing was written.
func (f *Files) Merge(upstream string, learned Known) (Known, error) {
	unlock, err := filelock.Dir(f.dir, lockPatience)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, _ := f.Load(upstream) // whoever loaded it first has heard what is wrong with it
	all.Join(learned)
	return all, f.write(upstream+suffix, all)
}

// write replaces a file, so that there is the old one or the new one at any
// moment. It is not synced: what a crash of the machine cuts short has a wrong checksum.
func (f *Files) write(name string, all Known) error {
	body, err := encode(all)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	head, err := json.Marshal(header{fileVersion, hex.EncodeToString(sum[:])})
	if err != nil {
		return err
	}
	temp := "." + rand.Text() + ".tmp"
	file, err := f.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(slices.Concat(head, []byte("\n"), body))
	if err = cmp.Or(err, file.Close()); err == nil {
		err = f.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, f.root.Remove(temp))
	}
	return nil
}

// encode writes as much as a file may hold, the newest first.
func encode(all Known) ([]byte, error) {
	fits, size := map[string]json.RawMessage{}, 1000 // for the header
	for _, digest := range all.newestFirst() {
		data, err := json.Marshal(all[digest])
		if err != nil {
			return nil, err
		}
		if size += len(data) + len(digest) + 4; size > maxFile {
			break
		}
		fits[digest] = data
	}
	return json.Marshal(fits)
}
