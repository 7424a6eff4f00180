package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sallyport/internal/envfile"
	"sallyport/internal/reference"
	"sallyport/internal/sanitize"
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
		d.Fail(at, n, "%s", envFileMessage(displayPath(d.Source.Path, name), err))
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

func envFileMessage(file string, err error) string {
	file = sanitize.Line(file, 300)
	if e, ok := errors.AsType[*envfile.LineError](err); ok {
		return fmt.Sprintf("%s:%d: %s", file, e.Line, e.Message)
	}
	switch {
	case errors.Is(err, envfile.ErrPublic):
		return fmt.Sprintf("others can read %s; run: chmod 600 %[1]s", file)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %s; correct the path, which starts at the directory of this file, or remove the key", file)
	}
	why := err
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		why = pathErr.Err
	}
	return fmt.Sprintf("%s cannot be read: %s", file, sanitize.Line(why.Error(), 200))
}
