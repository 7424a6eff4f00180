package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	d.Decoder = &yamlstrict.Decoder{Source: src, Label: label, Expand: expander(&d), KeyAlias: foreignKey}
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

// Find returns the path of the file to load: explicit if it is not empty, else
// $SALLYPORT_CONFIG, else ./upstreams.yaml, else
// $XDG_CONFIG_HOME/sallyport/upstreams.yaml (~/.config without that variable).
// If there is none, the error wraps fs.ErrNotExist and lists the paths it tried. If
// explicit or $SALLYPORT_CONFIG names a missing file, it tries no other path.
func Find(explicit string, getenv func(string) (string, bool)) (string, error) {
	env := func(name string) string {
		if getenv == nil {
			return ""
		}
		value, _ := getenv(name)
		return value
	}
	if explicit != "" {
		return findIn("--config", explicit)
	}
	if named := env("SALLYPORT_CONFIG"); named != "" {
		return findIn("$SALLYPORT_CONFIG", named)
	}
	return findIn("", usualPlaces(env("XDG_CONFIG_HOME"), env("HOME"))...)
}

func usualPlaces(xdg, home string) []string {
	places := []string{"upstreams.yaml"}
	switch {
	case filepath.IsAbs(xdg): // the specification says to ignore a relative one
		places = append(places, filepath.Join(xdg, "sallyport", "upstreams.yaml"))
	case home != "":
		places = append(places, filepath.Join(home, ".config", "sallyport", "upstreams.yaml"))
	}
	return places
}

// findIn returns the first path that exists; origin is what named it, "" for the usual paths.
func findIn(origin string, paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, nil // Load says what else may be wrong with it
		}
	}
	if origin != "" {
		return "", missingError(fmt.Sprintf("no settings: %s, named by %s, does not exist; correct the path, or run sallyport init --config %[1]s", paths[0], origin))
	}
	return "", missingError("no settings yet: run sallyport init (looked for " + strings.Join(paths, " and ") + "; --config names another file)")
}

// missingError says in one line that there are no settings, and what to do. It is [fs.ErrNotExist].
type missingError string

func (e missingError) Error() string { return string(e) }

// Is reports whether target is [fs.ErrNotExist].
func (e missingError) Is(target error) bool { return target == fs.ErrNotExist }
