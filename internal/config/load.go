package config

import (
	"fmt"
	"path/filepath"

	"sallyport/internal/yamlstrict"
)

// Error is one error in a file.
type Error = yamlstrict.Error

// Load reads the file at path, see [Parse]. Variables come from getenv, as in
// os.LookupEnv; nil means that none is set. Secrets come from files and from the
// keyring of the system; [Sources.Load] takes them from elsewhere.
func Load(path string, getenv func(string) (string, bool)) (*Config, error) {
	return Sources{Getenv: getenv}.Load(path)
}

// Load is the function Load with references looked up in s.
func (s Sources) Load(path string) (*Config, error) {
	data, err := yamlstrict.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load config: %w", err)
	}
	return s.Parse(path, data)
}

// Parse parses data as Load does; path is for messages and for Config.Dir. Errors in
// data are returned as one *Error or several joined, in the order of the file, at
// most ten.
func Parse(path string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	return Sources{Getenv: getenv}.Parse(path, data)
}

// Parse is the function Parse with references looked up in s.
func (s Sources) Parse(path string, data []byte) (*Config, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("parse config: %w", err)
	}
	src := yamlstrict.NewSource(path, data)
	src.All = s.AllErrors
	root, err := src.Document(`is empty; it needs at least the key "upstreams"`)
	if err != nil {
		return nil, err
	}
	c := Default()
	c.Path, c.Dir = path, dir
	c.Workflows.setDefaultPath(dir)
	d := decoder{dir: dir, refs: s.resolver(dir)}
	d.Decoder = &yamlstrict.Decoder{Source: src, Label: label, Expand: expander(&d), KeyAlias: ForeignKey}
	d.config(root, &c)
	c.Files = d.refs.Files
	c.References = d.refs.Values
	c.ManagedSecrets = d.managed
	reportProblems(&d, c.problems())
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &c, nil
}
