package toolscmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// manifestName is the file that lists the files that generate wrote.
const manifestName = ".sallyport.json"

// manifest maps the files that generate wrote, by slash-separated path, to their SHA-256.
type manifest struct {
	Files map[string]string `json:"files"`
}

// target is a folder that generate writes to. All access goes through an os.Root, so
// that no path of a tool or of a manifest leads out of it.
type target struct {
	name    string
	root    *os.Root
	folders []string // the folders in it that are written to
	owned   map[string]string
	force   bool
}

// openTarget opens the folder, or creates it. Without force it returns an error if the folders ours have files of others.
func openTarget(name string, force bool, ours ...string) (*target, error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	t := &target{name: name, root: root, folders: ours, force: force}
	if err := t.readManifest(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

func (t *target) close() { _ = t.root.Close() }

func (t *target) readManifest() error {
	data, err := t.root.ReadFile(manifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return t.checkEmpty()
	}
	if err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return &tool.Error{Kind: tool.Invalid, Err: err, Message: fmt.Sprintf("%s/%s cannot be read: %v", t.name, manifestName, err),
			Hint: "remove it and use --force; generate then cannot remove its old files"}
	}
	t.owned = m.Files
	maps.DeleteFunc(t.owned, func(name, _ string) bool { return !t.mayOwn(name) })
	return nil
}

// mayOwn reports whether generate can have written a file, as the manifest is not trusted. Names that lead out of the
// folder are refused where they are used.
func (t *target) mayOwn(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	return !fs.ValidPath(name) && !filepath.IsLocal(name) || fs.ValidPath(name) && slices.Contains(t.folders, folder)
}

func (t *target) checkEmpty() error {
	if t.force {
		return nil
	}
	for _, folder := range t.folders {
		entries, err := fs.ReadDir(t.root.FS(), folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(entries) > 0 {
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s/%s is not empty, and generate did not write what is in it", t.name, folder),
				Hint: "name another folder with --out, or use --force to write into this one (it removes nothing)"}
		}
	}
	return nil
}

// counts are the numbers of files by what replace did with them.
type counts struct {
	written, same, removed, kept int
}

func (c counts) String() string {
	text := fmt.Sprintf("%d written, %d unchanged, %d removed", c.written, c.same, c.removed)
	if c.kept > 0 {
		text += fmt.Sprintf(", %d kept", c.kept)
	}
	return text
}

// replace writes files and removes the other files that generate wrote, unless keep
// returns true or a user has changed them. It writes the manifest before the files
// and again after the removals, so that the manifest is never missing a generated
// file, even if the process is killed.
func (t *target) replace(files map[string][]byte, keep func(path string) bool) (counts, error) {
	if err := t.checkForeign(files); err != nil {
		return counts{}, err
	}
	next := map[string]string{}
	for name, data := range files {
		next[name] = digest(data)
	}
	both := maps.Clone(t.owned)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, next)
	if err := t.writeManifest(both); err != nil {
		return counts{}, err
	}
	var c counts
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.write(name, files[name], &c); err != nil {
			return c, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.owned)) {
		if _, current := next[name]; current {
			continue
		}
		if keep(name) {
			next[name] = t.owned[name]
			c.kept++
		} else if err := t.remove(name, &c); err != nil {
			return c, err
		}
	}
	return c, t.writeManifest(next)
}

// checkForeign returns an error if files would overwrite files that generate did not write. It is called before any write.
func (t *target) checkForeign(files map[string][]byte) error {
	if t.force {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, ours := t.owned[name]; ours {
			continue
		}
		if old, err := t.root.ReadFile(name); err == nil && !bytes.Equal(old, files[name]) {
			return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s/%s exists, and generate did not write it", t.name, name),
				Hint: "move it away, or use --force to write over it"}
		}
	}
	return nil
}

func (t *target) write(name string, data []byte, c *counts) error {
	if old, err := t.root.ReadFile(name); err == nil && bytes.Equal(old, data) {
		c.same++
		return nil
	}
	if err := t.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	c.written++
	return t.root.WriteFile(name, data, 0o644)
}

// remove removes a file that is unchanged since generate wrote it, and the folders that are empty then.
func (t *target) remove(name string, c *counts) error {
	old, err := t.root.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case digest(old) != t.owned[name]:
		c.kept++
		return nil
	}
	if err := t.root.Remove(name); err != nil {
		return err
	}
	c.removed++
	for dir := path.Dir(name); dir != "." && t.root.Remove(dir) == nil; {
		dir = path.Dir(dir) // until one is not empty
	}
	return nil
}

func (t *target) writeManifest(files map[string]string) error {
	data, err := json.MarshalIndent(manifest{Files: files}, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if old, err := t.root.ReadFile(manifestName); err == nil && bytes.Equal(old, data) {
		return nil
	}
	half := strings.TrimSuffix(manifestName, ".json") + ".new"
	if err := t.root.WriteFile(half, data, 0o644); err != nil {
		return err
	}
	return t.root.Rename(half, manifestName)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
