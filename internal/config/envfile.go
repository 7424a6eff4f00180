package config

import (
	"path/filepath"

	"sallyport/internal/envfile"
	"sallyport/internal/reference"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// readEnvFile reads the file that env_file names, before anything refers to what is in it.
func readEnvFile(d *decoder, root *yaml.Node, c *Config) {
	at := path{"env_file"}
	n := yamlstrict.ValueOf(root, at[0])
	if n == nil {
		return
	}
	var name string
	if d.Text(&name)(at, n); d.Bad(at) || !noTilde(d.Decoder, at, n) {
		return
	}
	if name == "" {
		d.Fail(at, n, `"env_file" names no file; remove the key`)
		return
	}
	c.EnvFile = reference.Absolute(d.dir, name)
	d.refs.Files = append(d.refs.Files, c.EnvFile)
	data, err := d.refs.EnvFile(c.EnvFile)
	if err == nil {
		d.refs.Vars, err = envfile.Parse(data)
	}
	if err != nil {
		d.Fail(at, n, "%s", envfile.Message(displayPath(d.Source.Path, name), err))
	}
	for name, value := range d.refs.Vars { // secret even if it is not referenced
		d.refs.Note(name, value)
	}
}

// displayPath returns a path in the settings file for display, relative to the same directory as file.
func displayPath(file, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(file), name)
}
