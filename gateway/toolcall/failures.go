package toolcall

import (
	"fmt"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// failures counts the failed calls of a program. A program that catches their errors may seem to succeed.
type failures struct {
	count int
	tool  tool.ID // of the first one
	first string  // what it failed with
}

// Failed records the error of a call, or of its result. It ignores a call that succeeded.
func (l *List) Failed(id tool.ID, result tool.Result, err error) {
	if err == nil && !result.IsError {
		return
	}
	said := result.Text()
	if err != nil {
		said = tool.AsError(err).Message
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures.count++; l.failures.count == 1 {
		l.failures.first = sanitize.Line(strings.TrimPrefix(said, id.String()+": "), 120)
		l.failures.tool = id
	}
}

// FailureNote returns a note on the failed calls of a program that succeeded, "" if it had none or if one of the texts,
// which are what it shows, has the error.
func (l *List) FailureNote(shown ...string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.failures
	if f.count == 0 {
		return ""
	}
	sign := sanitize.Head(f.first, 30)
	for _, text := range shown {
		if strings.Contains(text, sign) {
			return ""
		}
	}
	return fmt.Sprintf("%d of %d calls failed, first %s: %s", f.count, l.made, f.tool, f.first)
}
