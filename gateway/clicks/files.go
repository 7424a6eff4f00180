package clicks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sallyport/internal/filelock"
	"sallyport/internal/sealed"
)

const (
	// fileVersion changes when a file of another version would be misread.
	fileVersion = 1
	// maxFile bounds one file, in bytes; 2,000 pairs of twelve long words need 2 MB.
	maxFile = 8 << 20
	suffix  = ".clicks"
	// lockPatience is how long another process may change a file.
	lockPatience = 2 * time.Second
	// maxFiles is how many principals are remembered, unused how long one is that does nothing.
	maxFiles = 500
	unused   = 180 * 24 * time.Hour
)

// Files is a [Keeper] that keeps one file per principal in a directory, for its
// owner's eyes only. Processes may share the directory. Close it.
type Files struct {
	dir  string
	root *os.Root
}

var _ Keeper = (*Files)(nil)

// OpenFiles makes the directory if it is not there, and clears away the files of
// principals that have not been seen for half a year.
func OpenFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Files{dir: dir, root: root}
	f.sweep()
	return f, nil
}

// Close releases the directory.
func (f *Files) Close() error { return f.root.Close() }

// Load reads what is known of a principal. An error says that there is a file and
// that it is of no use; nothing is known then.
func (f *Files) Load(principal string) (Known, error) {
	data, _, err := sealed.Read(f.root, name(principal), maxFile)
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
	var known Known
	if err := json.Unmarshal(body, &known); err != nil {
		return Known{}, errDamaged
	}
	return known, nil
}

// Merge adds what was learned to what is kept, and returns both. A file that is of
// no use is written anew with what was known of it; one that is gone was to be
// forgotten. An error says that nothing was written.
func (f *Files) Merge(principal string, known, learned Known) (Known, error) {
	unlock, err := filelock.Dir(f.dir, lockPatience)
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := f.Load(principal)
	if err != nil && known != nil {
		all = maps.Clone(known)
	}
	all.Join(learned)
	body, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	data, err := sealed.Seal(fileVersion, body)
	if err != nil {
		return nil, err
	}
	return all, sealed.Write(f.root, name(principal), data)
}

// name is the file of a principal, whose name may be anything.
func name(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return hex.EncodeToString(sum[:16]) + suffix
}

// sweep removes what nobody has used for long, and the oldest where there are too many.
func (f *Files) sweep() {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return // the next start does it
	}
	changed := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), suffix) && info.Mode().IsRegular() {
			changed[e.Name()] = info.ModTime()
		}
	}
	names := slices.SortedFunc(maps.Keys(changed), func(a, b string) int { return changed[b].Compare(changed[a]) })
	for i, n := range names {
		if i >= maxFiles || time.Since(changed[n]) > unused {
			_ = f.root.Remove(n)
		}
	}
}
