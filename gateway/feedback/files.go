package feedback

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"time"

	"sallyport/internal/checksumfile"
)

const (
	// maxFile bounds one file, in bytes; 2,000 pairs of twelve long words need 2 MB.
	maxFile = 8 << 20
	// maxFiles is how many principals are stored, unused how long the file of an inactive one is.
	maxFiles  = 500
	maxUnused = 180 * 24 * time.Hour
)

// Files is a [Storage] with one file per principal in a directory, readable by its
// owner only. Processes may share the directory. Close it.
type Files struct{ folder *checksumfile.Folder }

var _ Storage = (*Files)(nil)

// OpenFiles creates the directory if necessary, and removes the files of principals
// that have been inactive for half a year.
func OpenFiles(dir string) (*Files, error) {
	folder, err := checksumfile.OpenFolder(dir, checksumfile.Kind{Version: 1, Suffix: ".clicks", Limit: maxFile})
	if err != nil {
		return nil, err
	}
	folder.Sweep(maxFiles, maxUnused)
	return &Files{folder}, nil
}

// Close releases the directory.
func (f *Files) Close() error { return f.folder.Close() }

// Load reads the pairs of a principal. It returns no pairs and an error if the file
// exists and is not valid.
func (f *Files) Load(principal string) (Pairs, error) {
	body, err := f.folder.Read(fileName(principal))
	if errors.Is(err, fs.ErrNotExist) {
		return Pairs{}, nil
	}
	if err != nil {
		return Pairs{}, err
	}
	return decode(body)
}

// Merge adds learned to the stored pairs, and returns all. It replaces an invalid file,
// starting from known; if the file was deleted, it does not restore known. After an
// error nothing was written.
func (f *Files) Merge(principal string, known, learned Pairs) (Pairs, error) {
	unlock, err := f.folder.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := f.Load(principal)
	if err != nil && known != nil {
		all = maps.Clone(known)
	}
	all.Merge(learned)
	body, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return all, f.folder.Write(fileName(principal), body)
}

// fileName returns the file name for a principal. A principal's name may be any text.
func fileName(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return hex.EncodeToString(sum[:16])
}
