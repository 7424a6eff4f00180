package folder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// DirName is the folder with the plugins, next to upstreams.yaml.
const DirName = "plugins"

// Plugin is the content of a plugin's folder: the bytes that are reviewed are those that run.
type Plugin struct {
	Manifest
	// Dir is the path of the folder.
	Dir string
	// Content is its files by slash-separated path.
	Content map[string][]byte
}

// The limits of a folder.
const (
	maxFiles = 200
	maxBytes = 4 << 20
	maxDepth = 8
)

// Read reads the folder of a plugin. Names that begin with a dot and __pycache__ are ignored; links and whatever is not
// a regular file are errors.
func Read(dir string) (Plugin, error) {
	p := Plugin{Dir: dir}
	var err error
	if p.Content, err = readFiles(dir); err != nil {
		return p, err
	}
	data, ok := p.Content[ManifestName]
	if !ok {
		return p, fmt.Errorf("%s has no %s", dir, ManifestName)
	}
	if p.Manifest, err = ParseManifest(filepath.Join(dir, ManifestName), data); err != nil {
		return p, err
	}
	if base := filepath.Base(dir); base != p.Name {
		return p, fmt.Errorf("%s: the name is %q, but the folder is %q; they must be the same", filepath.Join(dir, ManifestName), p.Name, base)
	}
	return p, p.chooseEntry()
}

// chooseEntry sets Entry to the file that exists.
func (p *Plugin) chooseEntry() error {
	if p.Entry == "" {
		_, python := p.Content["main.py"]
		_, script := p.Content["main.ts"]
		switch {
		case python && script:
			return fmt.Errorf(`%s has main.py and main.ts; say which with "entry" in %s`, p.Dir, ManifestName)
		case script:
			p.Entry = "main.ts"
		default:
			p.Entry = "main.py"
		}
	}
	if _, ok := p.Content[p.Entry]; !ok {
		return fmt.Errorf("%s has no %s", p.Dir, p.Entry)
	}
	return nil
}

// TypeScript reports whether the plugin is in TypeScript, else Python.
func (p *Plugin) TypeScript() bool { return path.Ext(p.Entry) == ".ts" }

// ignored reports whether a file is not a part of the plugin.
func ignored(name string) bool { return strings.HasPrefix(name, ".") || name == "__pycache__" }

func readFiles(dir string) (map[string][]byte, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, size := map[string][]byte{}, int64(0)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && ignored(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() && strings.Count(name, "/") >= maxDepth:
			return fmt.Errorf("%s: its folders nest more than %d deep", dir, maxDepth)
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file; a plugin has no links", filepath.Join(dir, name))
		}
		data, err := readFile(root, name, maxBytes-size)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if size += int64(len(data)); len(files) == maxFiles {
			return fmt.Errorf("%s has more than %d files", dir, maxFiles)
		}
		files[name] = data
		return nil
	})
	return files, err
}

var errTooLarge = fmt.Errorf("its files are larger than %d MiB together", maxBytes>>20)

func readFile(root *os.Root, name string, room int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, room+1))
	return data, cmp.Or(err, tooLarge(len(data), room))
}

func tooLarge(n int, room int64) error {
	if int64(n) > room {
		return errTooLarge
	}
	return nil
}

// Digest returns the digest of some bytes, as the lock file has it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// List returns the names of the folders of plugins in dir, sorted; none if there is no dir.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !ignored(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// State returns a text that changes when a file below dir changes.
func State(dir string) string {
	var b strings.Builder
	count := 0
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if count++; err != nil || count > 100*maxFiles {
			return err
		}
		if info, err := entry.Info(); err == nil && !ignored(entry.Name()) {
			fmt.Fprintln(&b, name, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return Digest([]byte(b.String()))
}

// Changes returns how the files differ from those that were reviewed, as "main.py changed"; none if they do not.
func (p *Plugin) Changes(r Reviewed) (list []string) {
	for name, data := range p.Content {
		switch digest, known := r.Files[name]; {
		case !known:
			list = append(list, name+" is new")
		case digest != Digest(data):
			list = append(list, name+" changed")
		}
	}
	for name := range r.Files {
		if _, ok := p.Content[name]; !ok {
			list = append(list, name+" is gone")
		}
	}
	slices.Sort(list)
	return list
}
