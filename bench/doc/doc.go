// Package doc writes what benchmarks have found into the documents that show it:
// the text between two comments of a Markdown file is the benchmark's, the rest is people's.
package doc

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Replace writes text between the marks of a section of a file, "<!-- begin NAME -->" and
// "<!-- end NAME -->". A file without them is left alone, and an error.
func Replace(path, section, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("replace section: %w", err)
	}
	before, _, after, err := cut(string(data), section)
	if err != nil {
		return fmt.Errorf("replace section: %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(before+"\n"+strings.TrimSpace(text)+"\n"+after), 0o644)
}

// Section returns what is between the marks, as [Replace] was given it but for white space around it.
func Section(path, section string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read section: %w", err)
	}
	_, text, _, err := cut(string(data), section)
	if err != nil {
		return "", fmt.Errorf("read section: %s: %w", path, err)
	}
	return strings.TrimSpace(text), nil
}

// cut returns what is before a section with its first mark, in it, and after it with its last mark.
func cut(document, section string) (before, text, after string, err error) {
	begin, end := "<!-- begin "+section+" -->", "<!-- end "+section+" -->"
	if strings.Count(document, begin) != 1 || strings.Count(document, end) != 1 {
		return "", "", "", fmt.Errorf("wants one line %s and one %s", begin, end)
	}
	before, rest, _ := strings.Cut(document, begin)
	text, after, found := strings.Cut(rest, end)
	if !found {
		return "", "", "", errors.New(end + " stands above " + begin)
	}
	return before + begin, text, end + after, nil
}
