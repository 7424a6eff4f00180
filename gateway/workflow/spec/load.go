package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// The bounds of a definition, besides yamlstrict.MaxFile.
const (
	// MaxSteps is how many steps it may have, with those within others, and MaxDepth how deep they may stand.
	MaxSteps = 1000
	MaxDepth = 20
	// MaxNames is how many inputs, outputs, fields of one form and variables it may have.
	MaxNames = 256
	// MaxCode is how long a program may be, in bytes.
	MaxCode = 64 << 10
)

const emptyFile = `is empty; a workflow needs at least "steps"`

// Load reads the definition at path: JSON where the name ends in .json, else YAML. Files that it names are read below its
// directory, and nowhere else. What is wrong with it is a *[yamlstrict.Error] or several, joined, in the order of the file.
func Load(path string) (*Definition, error) {
	data, err := readRegular(path)
	if err != nil {
		return nil, fmt.Errorf("load workflow: %w", err)
	}
	return Parse(path, data, func(name string) ([]byte, error) { return readBelow(filepath.Dir(path), name) })
}

// readRegular does not wait for a pipe to say something.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return yamlstrict.ReadFile(path)
}

// readBelow reads a file below a folder; no link leads out of it.
func readBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxCode+1))
}

// Parse reads data as Load does; path is for messages, for the name and for Dir, and need not be there. Files that the definition
// names are read by files, from paths with slashes as the definition has them; nil refuses them.
func Parse(path string, data []byte, files func(name string) ([]byte, error)) (*Definition, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("parse workflow: %w", err)
	}
	src := yamlstrict.NewSource(path, data)
	root, err := document(src, path)
	if err != nil {
		return nil, err
	}
	def := &Definition{Path: path, Dir: dir, Source: data, lines: src}
	d := &decoder{Decoder: &yamlstrict.Decoder{Source: src, Label: label, Meant: elsewhere}, def: def, files: files, ids: map[string]int{}}
	d.owners = stepDecoder{d}.ownersOf()
	d.definition(root, def)
	if err := d.Err(); err != nil {
		return nil, err
	}
	def.Digest = def.digest()
	return def, nil
}

func document(src *yamlstrict.Source, path string) (*yaml.Node, error) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return src.JSON(emptyFile)
	}
	return src.Document(emptyFile)
}

// digest is of the text, and of the files that it names.
func (d *Definition) digest() string {
	h := sha256.New()
	h.Write(d.Source)
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		fmt.Fprintf(h, "\x00%d %s %d\n", len(name), name, len(d.Files[name]))
		h.Write(d.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// LoadDir reads the definitions in a folder, but not their tests (NAME_test.yaml), sorted by name. What is wrong with one is
// in faults, and no other suffers from it; of two with one name the first by its file counts. No folder is no definition.
func LoadDir(dir string) (defs []*Definition, faults []error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("load workflows: %w", err)}
	}
	taken := map[string]*Definition{}
	for _, e := range entries {
		if e.IsDir() || !isDefinition(e.Name()) {
			continue
		}
		def, err := Load(filepath.Join(dir, e.Name()))
		switch {
		case err != nil:
			faults = append(faults, err)
		case taken[def.Name] != nil:
			faults = append(faults, def.Error(def.named, "the name %q is taken by %s", def.Name, filepath.Base(taken[def.Name].Path)))
		default:
			taken[def.Name] = def
			defs = append(defs, def)
		}
	}
	slices.SortFunc(defs, func(a, b *Definition) int { return cmp.Compare(a.Name, b.Name) })
	return defs, faults
}

// isDefinition goes by a file's name.
func isDefinition(name string) bool {
	ext := filepath.Ext(name)
	base := strings.TrimSuffix(name, ext)
	return slices.Contains([]string{".yaml", ".yml", ".json"}, ext) && !strings.HasSuffix(base, "_test") && !strings.HasPrefix(name, ".")
}
