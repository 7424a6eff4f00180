package settingsedit

import (
	"errors"
	"fmt"
	"path/filepath"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/yamlstrict"
)

// Problem is an error in a draft.
type Problem struct {
	// Line and Column are where it is in the text of the draft, from 1; 0 if it has no place there.
	Line, Column int
	// Message says what is wrong, and where, if that is outside of the draft.
	Message string
	// Snippet is the line of the draft with a caret below it, "" for none.
	Snippet string
	// Stale says that the file has changed since the draft was begun.
	Stale bool
}

// problemsOf returns the problems in an error of loading the settings with a draft of a part.
func problemsOf(err error, path string, part Part, draft string) (all []Problem) {
	source := yamlstrict.NewSource(path, []byte(draft))
	for _, one := range split(err) {
		wrong, ok := errors.AsType[*config.Error](one)
		if !ok {
			all = append(all, Problem{Message: part.secrets.hide(sanitize.Text(one.Error(), 1000))})
			continue
		}
		p := Problem{Message: part.secrets.hide(sanitize.Line(wrong.Message, 500))}
		at := wrong.Line - part.Line + 1
		if wrong.File == path && wrong.Line > 0 && at >= 1 && at < source.Lines() {
			p.Line, p.Column = at, part.secrets.column(source.Line(at), max(wrong.Column-part.indent, 1))
			p.Snippet = source.Error(yamlstrict.Fault{Line: p.Line, Column: p.Column}).Snippet
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
