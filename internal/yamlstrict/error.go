package yamlstrict

import "fmt"

// Error is one error in a file.
type Error struct {
	// File is the path as it was given.
	File string
	// Line and Column count from 1, columns in runes; both are 0 without a position.
	Line, Column int
	// Message is one line and contains no secret.
	Message string
	// Snippet is the numbered source line with a caret below it; two lines without a final newline, or "".
	Snippet string
}

// Error returns "file:line:column: message" and the snippet on the lines below.
func (e *Error) Error() string {
	text := e.File + ": " + e.Message
	if e.Line > 0 {
		text = fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	}
	if e.Snippet == "" {
		return text
	}
	return text + "\n" + e.Snippet
}
