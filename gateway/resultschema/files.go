package resultschema

import (
	"encoding/json"
	"errors"
	"io/fs"

	"sallyport/internal/checksumfile"
)

// maxFile bounds one file, in bytes.
const maxFile = 8 << 20

// Files is a [Keeper] that keeps one file per upstream in a directory, for its
// owner's eyes only. Processes may share the directory. Close it.
type Files struct{ folder *checksumfile.Folder }

var _ Keeper = (*Files)(nil)

// OpenFiles makes the directory if it is not there.
func OpenFiles(dir string) (*Files, error) {
	folder, err := checksumfile.OpenFolder(dir, checksumfile.Kind{Version: 1, Suffix: ".shapes", Limit: maxFile})
	if err != nil {
		return nil, err
	}
	return &Files{folder}, nil
}

// Close releases the directory.
func (f *Files) Close() error { return f.folder.Close() }

// Load reads what is known of an upstream. An error says that there is a file and
// that it is of no use; nothing is known then.
func (f *Files) Load(upstream string) (Known, error) {
	body, err := f.folder.Read(upstream)
	if errors.Is(err, fs.ErrNotExist) {
		return Known{}, nil
	}
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
// of no use is begun again. An error says that nothing was written.
func (f *Files) Merge(upstream string, learned Known) (Known, error) {
	unlock, err := f.folder.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, _ := f.Load(upstream) // whoever loaded it first has heard what is wrong with it
	all.Join(learned)
	body, err := encode(all)
	if err != nil {
		return nil, err
	}
	return all, f.folder.Write(upstream, body)
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
