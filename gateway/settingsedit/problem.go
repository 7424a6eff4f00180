package settingsedit

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// Problem is an error in a draft.
type Problem struct {
	// Line and Column are where it is in the text of the draft, from 1; 0 if it has no place there.
	Line, Column int
	// Message says what is wrong, and where, if that is outside of the draft.
	Message string
	// Snippet is the line with a caret below it, "" for none.
	Snippet string
	// Stale says that the file has changed since the draft was begun.
	Stale bool
}

// problemsOf returns the problems in an error of loading the settings with a draft of so many lines.
func problemsOf(err error, path string, part Part, lines int) (all []Problem) {
	for _, one := range split(err) {
		wrong, ok := errors.AsType[*config.Error](one)
		if !ok {
			all = append(all, Problem{Message: sanitize.Text(one.Error(), 1000)})
			continue
		}
		p := Problem{Message: sanitize.Line(wrong.Message, 500), Snippet: wrong.Snippet}
		at := wrong.Line - part.Line + 1
		if wrong.File == path && wrong.Line > 0 && at >= 1 && at <= lines {
			p.Line, p.Column = at, max(wrong.Column-part.indent, 1)
			p.Snippet = inDraft(wrong.Snippet, at, part.indent)
		} else if wrong.Line > 0 {
			p.Message = fmt.Sprintf("%s, line %d, column %d: %s", sanitize.Line(filepath.Base(wrong.File), 80), wrong.Line, wrong.Column, p.Message)
		}
		all = append(all, p)
	}
	return all
}

// split returns the errors that are joined in one.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// inDraft returns a snippet of the file as the line with that number of a draft, which is indented less.
func inDraft(snippet string, number, indent int) string {
	gutter, text, ok := strings.Cut(snippet, " | ")
	_, caret, both := strings.Cut(text, "\n")
	if !ok || !both {
		return snippet
	}
	text, _, _ = strings.Cut(text, "\n")
	caret = strings.TrimPrefix(caret, strings.Repeat(" ", len(gutter)+len(" | ")))
	if space := strings.Repeat(" ", indent); strings.HasPrefix(text, space) && strings.HasPrefix(caret, space) {
		text, caret = text[indent:], caret[indent:]
	}
	begin := fmt.Sprintf("%3d | ", number)
	return begin + text + "\n" + strings.Repeat(" ", len(begin)) + caret
}
