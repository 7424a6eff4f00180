package resultschema

import (
	"encoding/json"
	"errors"
	"io/fs"

	"sallyport/internal/checksumfile"
)

// maxFile bounds one file, in bytes.
const maxFile = 8 << 20

// Files is a [Storage] with one file per upstream in a directory, readable by its owner
// only. Processes may share the directory. Close it.
type Files struct{ folder *checksumfile.Folder }

var _ Storage = (*Files)(nil)

// OpenFiles creates the directory if necessary.
func OpenFiles(dir string) (*Files, error) {
	folder, err := checksumfile.OpenFolder(dir, checksumfile.Kind{Version: 1, Suffix: ".shapes", Limit: maxFile})
	if err != nil {
		return nil, err
	}
	return &Files{folder}, nil
}

// Close releases the directory.
func (f *Files) Close() error { return f.folder.Close() }

// Load reads the entries of an upstream. It returns no entries and an error if the file
// exists and is not valid.
func (f *Files) Load(upstream string) (Entries, error) {
	body, err := f.folder.Read(upstream)
	if errors.Is(err, fs.ErrNotExist) {
		return Entries{}, nil
	}
	if err != nil {
		return Entries{}, err
	}
	return decode(body)
}

// Merge adds learned to the stored entries, and returns all. It replaces an invalid
// file. After an error nothing was written.
func (f *Files) Merge(upstream string, learned Entries) (Entries, error) {
	unlock, err := f.folder.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, _ := f.Load(upstream) // the first load has reported the error
	all.Merge(learned)
	body, err := encode(all, maxFile)
	if err != nil {
		return nil, err
	}
	return all, f.folder.Write(upstream, body)
}

// encode returns as many entries as fit into limit bytes, newest first.
func encode(all Entries, limit int) ([]byte, error) {
	fits, size := map[string]json.RawMessage{}, 1000 // for the header
	for _, digest := range all.newestFirst() {
		data, err := json.Marshal(all[digest])
		if err != nil {
			return nil, err
		}
		if size += len(data) + len(digest) + 4; size > limit {
			break
		}
		fits[digest] = data
	}
	return json.Marshal(fits)
}
