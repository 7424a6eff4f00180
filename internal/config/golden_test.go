package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/envfile"
	store "sallyport/internal/secret"
	"sallyport/internal/secretstore"
	"sallyport/internal/testutil/golden"
	"sallyport/internal/yamlstrict"
)

const secret = "hunter2-hunter2"

// env is the environment of all tests here.
func env(name string) (string, bool) {
	value, ok := map[string]string{
		"SECRET": secret, "EMPTY": "", "NEWLINE": "\n", "HOME": "/home/me", "REF": "${SECRET} $$ $SECRET",
		"YAML": "x, y]\ncommand: \"evil", "LONG": strings.Repeat(secret, 100),
	}[name]
	return value, ok
}

// sources of all tests here: no file of this machine is read and no keyring asked.
var sources = Sources{
	Getenv: env,
	File: func(path string) (string, error) {
		switch filepath.Base(path) {
		case "token":
			return secret, nil
		case "refs":
			return "${SECRET} $$", nil
		case "closed":
			return "", fmt.Errorf("read secret: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission})
		}
		return "", fmt.Errorf("read secret: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
	},
	EnvFile: func(path string) ([]byte, error) {
		switch filepath.Base(path) {
		case "good.env":
			return []byte("FROM_FILE=" + secret + "\nSECRET=other\n"), nil
		case "open.env":
			return nil, envfile.ErrPublic
		case "line.env":
			return []byte("A=1\n" + secret + "\n"), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	},
	Managers: managersFake{},
	Keyring: func(name string) (string, error) {
		switch name {
		case "token":
			return secret, nil
		case "torn":
			return "", errors.New("read \"torn\" in the keyring: it is\x1b[2J on fire")
		}
		return "", fmt.Errorf("read %q: %w", name, store.ErrNotFound)
	},
}

// TestErrors shows what a person reads for each way to get the file wrong. It
// uses what every error must keep to: no secret, no more than ten, in good time.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			c, err := sources.Parse("upstreams.yaml", data)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil {
				t.Fatalf("no error, but %v", c)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("error shows a secret:\n%v", err)
			}
			if n := len(allErrors(err)); n > yamlstrict.MaxErrors+1 {
				t.Errorf("%d errors are too many", n)
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// TestWarnings shows the warnings of a file that loads.
func TestWarnings(t *testing.T) {
	data, err := os.ReadFile("testdata/warnings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := sources.Parse("upstreams.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, w := range c.Warnings {
		text.WriteString(w.Error() + "\n")
	}
	golden.Check(t, "testdata/warnings.txt", text.String())
}

// allErrors takes a joined error apart.
func allErrors(err error) []*Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, allErrors(e)...)
		}
		return all
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return []*Error{e}
	}
	return nil
}

// managersFake is a secret manager with one secret.
type managersFake struct{}

func (managersFake) Use(secretstore.Managers) {}

func (managersFake) Read(reference string) (string, error) {
	switch reference {
	case "vault:secret/data/github#token":
		return secret, nil
	case "aws:denied":
		return "", &secretstore.Error{Kind: secretstore.Refused, Message: "${aws:denied}: AWS Secrets Manager answers AccessDeniedException", Fix: "allow it"}
	}
	return "", &secretstore.Error{Kind: secretstore.Missing, Message: "${" + reference + "}: no such secret", Fix: "check the path"}
}
