package execution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

// maxTitle is the maximum length of a title, in bytes.
const maxTitle = 100

// Title returns a line that describes a program: its first comment or docstring, or else the tools that it called, or else its
// first line.
func Title(code string, tools []string) string {
	first := strings.TrimSpace(code)
	first, _, _ = strings.Cut(first, "\n")
	return sanitize.Line(cmp.Or(firstComment(code), toolsText(tools), first), maxTitle)
}

// blocks are the marks that begin a comment of several lines or a docstring, with those that end it.
var blocks = map[string]string{`"""`: `"""`, "'''": "'''", "/**": "*/", "/*": "*/"}

// firstComment returns the first line of text in the comments before the program's first statement. A line for a tool, such as
// "#!/usr/bin/env python3", is none.
func firstComment(code string) string {
	end := "" // of the comment that the line is in
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		text := strings.TrimSpace(strings.TrimLeft(line, "*"))
		if end == "" {
			mark := markOf(line)
			if mark == "" && line != "" {
				return ""
			}
			text, end = strings.TrimPrefix(line, mark), blocks[mark]
		}
		if end != "" {
			if before, _, ended := strings.Cut(text, end); ended {
				text, end = before, ""
			}
		}
		if text = strings.Trim(text, "#/! "); text != "" && !isDirective(text) {
			return text
		}
	}
	return ""
}

// markOf returns the mark that begins a comment or docstring, "" for none.
func markOf(line string) string {
	for _, mark := range []string{"#", "//", "/**", "/*", `"""`, "'''"} {
		if strings.HasPrefix(line, mark) {
			return mark
		}
	}
	return ""
}

// isDirective reports whether a comment is for a tool and not for a reader.
func isDirective(text string) bool {
	return slices.ContainsFunc([]string{"usr/bin/", "bin/", "-*-", "coding:", "coding=", "type:", "noqa", "pylint:", "eslint", "@ts-", "<reference", "prettier-"}, func(mark string) bool {
		return strings.HasPrefix(text, mark)
	})
}

// toolsText lists the first three different tools.
func toolsText(tools []string) string {
	var names []string
	for _, name := range tools {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	const most = 3
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
