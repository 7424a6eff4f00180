package shapes

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/sealed"
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

// Load reads what is known of an upstream. An error says that there is a file and
// that it is of no use; nothing is known then.
func (f *Files) Load(upstream string) (Known, error) {
	data, _, err := sealed.Read(f.root, upstream+suffix, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Known{}, nil
	}
	if err != nil {
		return Known{}, err
	}
	body, err := sealed.Open(fileVersion, data)
	if err != nil {
		return Known{}, err
	}
	known := Known{}
	if err := json.Unmarshal(body, &known); err != nil || known == nil {
		return Known{}, errDamaged
	}
	return known, nil
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

func (f *Files) write(name string, all Known) error {
	body, err := encode(all)
	if err != nil {
		return err
	}
	data, err := sealed.Seal(fileVersion, body)
	if err != nil {
		return err
	}
	return sealed.Write(f.root, name, data)
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
