// Package lockfile reads lock files: text with the line "version 1", then a record per line. Empty lines and lines that
// begin with "#" are skipped. People commit and merge these files, so errors name the line, and merge conflicts.
package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

// Read calls record for each record of a file of at most limit bytes. A file that does not exist has none.
func Read(path string, limit int, record func(line string) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read lock file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("read lock file: %w", err)
	case len(data) > limit:
		return fmt.Errorf("read lock file: %s is larger than %d MiB", path, limit>>20)
	}
	if err := Parse(data, record); err != nil {
		return fmt.Errorf("read lock file: %s: %w", path, err)
	}
	return nil
}

// Parse calls record for each record, until it returns an error.
func Parse(data []byte, record func(line string) error) error {
	versioned := false
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		text := strings.TrimSuffix(string(line), "\r")
		var err error
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case isConflictMark(text):
			err = errors.New("merge conflict; keep the lines of both sides, or of one where both name the same tool")
		case !versioned:
			if versioned = text == "version 1"; !versioned {
				err = fmt.Errorf("%q is not \"version 1\"; a newer sallyport may have written this file", sanitize.Line(text, 40))
			}
		default:
			err = record(text)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

func isConflictMark(line string) bool {
	return slices.ContainsFunc([]string{"<<<<<<<", "=======", ">>>>>>>", "|||||||"}, func(mark string) bool { return strings.HasPrefix(line, mark) })
}
