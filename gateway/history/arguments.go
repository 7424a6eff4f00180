package history

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

const (
	// maxSearched is how many journals are searched for arguments.
	maxSearched = 200
	// maxArgumentSize is the size of the largest arguments that are returned, in bytes.
	maxArgumentSize = 64 << 10
)

// LastArguments returns the arguments of the last successful call of each tool of an upstream, as far as the journals
// of all principals have them. It is for operators.
func (h *History) LastArguments(upstream string) map[tool.ID]json.RawMessage {
	found := map[tool.ID]json.RawMessage{}
	for _, path := range newestJournals(h) {
		f, err := journal.Open(path)
		if err != nil {
			continue // one that is being written, or is damaged
		}
		for _, c := range slices.Backward(f.Calls) {
			good := c.State == journal.Ended && c.Asked && c.Err == nil && !c.Lost && !c.Result.IsError
			if _, known := found[c.Tool]; !known && good && c.Tool.Upstream == upstream && c.Args != nil && len(c.Args) <= maxArgumentSize {
				found[c.Tool] = json.RawMessage(strings.Clone(string(c.Args)))
			}
		}
		_ = f.Close()
	}
	return found
}

// newestJournals returns the paths of the last journals, the newest first.
func newestJournals(h *History) (paths []string) {
	type file struct {
		path string
		at   int64
	}
	var all []file
	_ = filepath.WalkDir(h.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // what cannot be read has no journals
		}
		if info, err := entry.Info(); err == nil {
			all = append(all, file{path, info.ModTime().UnixNano()})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(b.at, a.at) })
	for _, f := range all[:min(len(all), maxSearched)] {
		paths = append(paths, f.path)
	}
	return paths
}
