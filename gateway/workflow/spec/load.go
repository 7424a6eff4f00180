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

// The limits of a definition, in addition to yamlstrict.MaxFile.
const (
	// MaxSteps limits its steps, including nested ones, and MaxDepth their nesting.
	MaxSteps = 1000
	MaxDepth = 20
	// MaxNames limits its inputs, its outputs, its variables, and the fields of one form.
	MaxNames = 256
	// MaxCode limits a program, in bytes.
	MaxCode = 64 << 10
)

const emptyFile = `is empty; a workflow needs at least "steps"`

// Load reads the definition at path: JSON if the name ends in .json, else YAML. Files that it names are read only from below its
// directory. Errors in the definition are *[yamlstrict.Error], joined, in file order.
func Load(path string) (*Definition, error) {
	data, err := readRegular(path)
	if err != nil {
		return nil, fmt.Errorf("load workflow: %w", err)
	}
	return Parse(path, data, func(name string) ([]byte, error) { return readBelow(filepath.Dir(path), name) })
}

// readRegular reads a regular file. It refuses others, such as pipes, which could block.
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

// readBelow reads a file below a folder. It does not follow links out of the folder.
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

// Parse parses data as Load does; path is for messages, for the name and for Dir, and need not exist. Files that the definition
// names are read by files, with slash-separated paths as in the definition; nil refuses them.
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
	d := &decoder{Decoder: &yamlstrict.Decoder{Source: src, Label: label, KeyAlias: translateKey}, def: def, files: files, ids: map[string]int{}}
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

// digest returns the hash of the text and of the files that it names.
func (d *Definition) digest() string {
	h := sha256.New()
	h.Write(d.Source)
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		fmt.Fprintf(h, "\x00%d %s %d\n", len(name), name, len(d.Files[name]))
		h.Write(d.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// LoadDir reads the definitions in a folder, without their tests (NAME_test.yaml), sorted by name. Errors in a file are
// in faults and do not affect other files; of two with the same name, the first by file name is used. A missing folder has no definitions.
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
			faults = append(faults, def.Error(def.namePos, "the name %q is taken by %s", def.Name, filepath.Base(taken[def.Name].Path)))
		default:
			taken[def.Name] = def
			defs = append(defs, def)
		}
	}
	slices.SortFunc(defs, func(a, b *Definition) int { return cmp.Compare(a.Name, b.Name) })
	return defs, faults
}

// isDefinition reports whether a file name is that of a definition.
func isDefinition(name string) bool {
	ext := filepath.Ext(name)
	base := strings.TrimSuffix(name, ext)
	return slices.Contains([]string{".yaml", ".yml", ".json"}, ext) && !strings.HasSuffix(base, "_test") && !strings.HasPrefix(name, ".")
}
