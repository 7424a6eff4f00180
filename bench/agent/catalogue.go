package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Catalogue is a server's answer to tools/list that somebody wrote down. Its tools are shown, and not there to be called.
type Catalogue struct {
	Name, Description string
	Tools             []json.RawMessage
}

// ReadCatalogues reads the files NAME.json of a folder, each an answer to tools/list. They are sorted by name.
func ReadCatalogues(dir string) ([]Catalogue, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Catalogue
	for _, path := range paths {
		c, err := readCatalogue(path)
		if err != nil {
			return nil, fmt.Errorf("read catalogue: %w", err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Catalogue) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func readCatalogue(path string) (Catalogue, error) {
	c := Catalogue{Name: strings.TrimSuffix(filepath.Base(path), ".json")}
	data, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.Tools = list.Tools
	return c, nil
}

// Without leaves out the catalogues of servers that are there for real.
func Without(all []Catalogue, names ...string) []Catalogue {
	return slices.DeleteFunc(slices.Clone(all), func(c Catalogue) bool { return slices.Contains(names, c.Name) })
}

// source is the catalogue as a server that cannot be called.
func (c Catalogue) source() (source, error) {
	s := source{name: c.Name, about: c.Description}
	for _, definition := range c.Tools {
		t, err := readListed(definition)
		if err != nil {
			return s, fmt.Errorf("catalogue %s: %w", c.Name, err)
		}
		s.tools = append(s.tools, t)
	}
	return s, nil
}
