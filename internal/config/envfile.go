package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"sallyport/internal/sanitize"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// errPublicFile: a file of secrets that others on the machine can read.
var errPublicFile = errors.New("others can read it")

// ReadEnv reads the file at path, see [ParseEnv]. One that others can read is
// refused. Errors show no value.
func ReadEnv(path string) (Secrets, error) {
	data, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	return ParseEnv(data)
}

// readPrivate reads a file that only its owner can read. It checks the type before it opens the file, as opening a pipe would block.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, errPublicFile
	}
	data, err := io.ReadAll(io.LimitReader(f, yamlstrict.MaxFile+1))
	if err == nil && len(data) > yamlstrict.MaxFile {
		err = errors.New("it is larger than 1 MiB")
	}
	return data, err
}

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
	c.EnvFile = absolute(d.dir, name)
	d.refs.files = append(d.refs.files, c.EnvFile)
	data, err := d.refs.EnvFile(c.EnvFile)
	if err == nil {
		d.refs.vars, err = ParseEnv(data)
	}
	if err != nil {
		d.Fail(at, n, "%s", envFileMessage(displayPath(d.Source.Path, name), err))
	}
	for name, value := range d.refs.vars { // secret even if it is not referenced
		d.refs.note(name, value, nil)
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
	if e, ok := errors.AsType[*lineError](err); ok {
		return fmt.Sprintf("%s:%d: %s", file, e.line, e.message)
	}
	switch {
	case errors.Is(err, errPublicFile):
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
