// Package examples has fifteen examples, one in a folder. Each has a README with its commands and what they print, settings
// whose upstreams need no network, and programs. sallyport example runs them, and a test compares what they print.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/walkthrough"
)

//go:embed 0* 1*
var files embed.FS

// Replies is the file of an example with the replies of a model, separated by lines of three dashes. They are used where
// there is no model. "$OUTPUT" in a reply is what the last program printed.
const Replies = "replies.md"

// Example is one of them.
type Example struct {
	// Name is its folder, such as 05-state-persistence.
	Name string
	// Title is the heading of its README.
	Title string
	// Steps are its commands.
	Steps []walkthrough.Step
	// Replies are those of a scripted model; nil if it needs no model.
	Replies []string
}

// Number returns its number in two digits.
func (e Example) Number() string { return e.Name[:2] }

// All returns the examples in order.
func All() (all []Example, err error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		e, err := read(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read example %s: %w", entry.Name(), err)
		}
		all = append(all, e)
	}
	return all, nil
}

func read(name string) (e Example, err error) {
	page, err := files.ReadFile(name + "/README.md")
	if err != nil {
		return e, err
	}
	head, _, _ := strings.Cut(string(page), "\n")
	e = Example{Name: name, Title: strings.TrimPrefix(head, "# ")}
	if text, err := files.ReadFile(name + "/" + Replies); err == nil {
		e.Replies = strings.Split(string(text), "\n---\n")
	}
	e.Steps, err = walkthrough.Steps(string(page))
	return e, err
}

// Copy writes the files of an example to a folder, which must not exist.
func (e Example) Copy(dir string) error {
	from, err := fs.Sub(files, e.Name)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err != nil || path == "." {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(to, 0o700)
		}
		data, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
}
