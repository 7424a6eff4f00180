package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Catalogue is a recorded tools/list response of a server. Its tools are shown, but cannot be called.
type Catalogue struct {
	Name, Description string
	// Package and Version are what the server was, where the folder says so.
	Package, Version string
	Tools            []json.RawMessage
}

// ReadCatalogues reads the files NAME.json of a folder, each an answer to tools/list: its result, or all of the message. They are
// sorted by name. What they are of is read from the table of its README.md, which begins with the columns file, package and version.
func ReadCatalogues(dir string) ([]Catalogue, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	packages, err := readPackages(filepath.Join(dir, "README.md"))
	if err != nil {
		return nil, fmt.Errorf("read catalogues: %w", err)
	}
	var all []Catalogue
	for _, path := range paths {
		c, err := readCatalogue(path)
		if err != nil {
			return nil, fmt.Errorf("read catalogue: %w", err)
		}
		c.Package, c.Version = packages[c.Name][0], packages[c.Name][1]
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
	var list struct {
		Tools  []json.RawMessage
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.Tools = append(list.Tools, list.Result.Tools...)
	return c, nil
}

// readPackages returns packages and versions by name of file.
func readPackages(readme string) (map[string][2]string, error) {
	data, err := os.ReadFile(readme)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	packages := map[string][2]string{}
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, "|"); len(cells) > 4 && strings.TrimSpace(cells[0]) == "" {
			packages[strings.TrimSpace(cells[1])] = [2]string{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])}
		}
	}
	return packages, err
}

// Without leaves out the catalogues of servers that really run.
func Without(all []Catalogue, names ...string) []Catalogue {
	return slices.DeleteFunc(slices.Clone(all), func(c Catalogue) bool { return slices.Contains(names, c.Name) })
}

// source is the catalogue as a server that cannot be called.
func (c Catalogue) source() (source, error) {
	s := source{name: c.Name, about: c.Description}
	for _, definition := range c.Tools {
		t, err := readTool(definition)
		if err != nil {
			return s, fmt.Errorf("catalogue %s: %w", c.Name, err)
		}
		s.tools = append(s.tools, t)
	}
	return s, nil
}
