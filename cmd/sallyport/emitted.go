package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

// emittedJSON is one content item that a program emitted. Fields are added, never changed.
type emittedJSON struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int    `json:"size"`
	// Text is set for an item of type text; File is the path that --emit has written the item to.
	Text string `json:"text,omitempty"`
	File string `json:"file,omitempty"`
}

func newEmittedJSON(items []tool.Content) []emittedJSON {
	var all []emittedJSON
	for _, c := range items {
		out := emittedJSON{Type: c.Type, Name: c.Name, MIME: c.MIME, Size: len(bytesOf(c))}
		if c.Type == "text" {
			out.Text = c.Text
		}
		all = append(all, out)
	}
	return all
}

// withFiles returns out with the files that its emitted items were written to.
func (out executionJSON) withFiles(files []string) executionJSON {
	for i, file := range files {
		out.Emitted[i].File = file
	}
	return out
}

// listEmitted lists on stderr what was emitted, and the files it was written to. It
// never prints the bytes themselves.
func (a *app) listEmitted(items []tool.Content, files []string) {
	for i, c := range items {
		line := "emitted: " + execution.Label(c)
		if i < len(files) {
			line += " -> " + files[i]
		}
		fmt.Fprintln(a.Stderr, cli.Clean(line))
	}
}

func bytesOf(c tool.Content) []byte {
	if c.Data != nil {
		return c.Data
	}
	return []byte(c.Text)
}

// makeFolder creates the folder of --emit before a program runs, so that a bad path fails early.
func makeFolder(folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return emitError(err)
	}
	return nil
}

// writeEmitted writes each item to a new file in the folder and returns the paths. An
// empty folder writes nothing. The names come from the program and are not trusted:
// no file outside the folder is touched, and no existing file is replaced.
func writeEmitted(folder string, items []tool.Content) (files []string, err error) {
	if folder == "" || len(items) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, emitError(err)
	}
	defer root.Close()
	for i, c := range items {
		name, err := writeNew(root, fileName(c, i), bytesOf(c))
		if err != nil {
			return files, emitError(err)
		}
		files = append(files, filepath.Join(folder, name))
	}
	return files, nil
}

func emitError(err error) error {
	return &tool.Error{Kind: tool.Invalid, Message: "cannot write emitted files: " + err.Error(), Hint: "give --emit a folder that can be written to", Err: err}
}

// maxCopies limits the files of one name in a folder.
const maxCopies = 1000

// writeNew writes a new file and returns its name: plot.png, or plot-2.png and so on if that exists.
func writeNew(root *os.Root, name string, data []byte) (string, error) {
	ending := filepath.Ext(name)
	for n := 1; n <= maxCopies; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ending), n, ending)
		}
		f, err := root.OpenFile(try, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return try, errors.Join(err, f.Close())
	}
	return "", fmt.Errorf("there are %d files called %s", maxCopies, name)
}

// maxFileName is the longest file name in bytes. It leaves room for a number.
const maxFileName = 200

// fileName returns a safe file name for the name that a program gave: without a path, not
// hidden, not a command-line option. It does not rely on the bridge's own cleaning.
func fileName(c tool.Content, i int) string {
	name := cli.Clean(c.Name)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.TrimLeft(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || strings.ContainsRune(`:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name), ". -~")
	if name == "" {
		return fmt.Sprintf("emitted-%d%s", i+1, extensionOfType(c))
	}
	if len(name) > maxFileName {
		ending := filepath.Ext(name)
		if len(ending) > 20 {
			ending = ""
		}
		name = strings.ToValidUTF8(name[:maxFileName-len(ending)], "") + ending
	}
	return name
}

// extensionOfType returns the usual file extension for the item's MIME type.
func extensionOfType(c tool.Content) string {
	kind, _, _ := strings.Cut(c.MIME, ";")
	return cmp.Or(map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
		"audio/wav": ".wav", "audio/mpeg": ".mp3", "text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv", "text/html": ".html",
		"application/json": ".json", "application/pdf": ".pdf",
	}[kind], ".bin")
}
