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
	// own is set if a call failed with anything but an error of its tool; refused counts the calls that the runtime refused.
	own     bool
	refused int
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
	l.failures.own = l.failures.own || err != nil && tool.AsError(err).Kind != tool.Failed
	if l.failures.count++; l.failures.count == 1 {
		l.failures.first = sanitize.Line(strings.TrimPrefix(said, id.String()+": "), 120)
		l.failures.tool = id
	}
}

// Refused records calls that the program's runtime refused to make.
func (l *List) Refused(count int, id, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures.refused = min(count, MaxRecords)
	if l.failures.count == 0 {
		l.failures.tool, _ = tool.ParseID(id)
		l.failures.first = sanitize.Line(message, 120)
	}
}

// FailureNote returns a note on the failed calls of a program that succeeded, "" if it had none or if one of the texts,
// which are what it shows, has the error. With expected, it handles errors of tools.
func (l *List) FailureNote(expected bool, shown ...string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.failures
	count := f.count + f.refused
	if count == 0 || expected && !f.own && f.refused == 0 {
		return ""
	}
	sign := sanitize.Head(f.first, 30)
	for _, text := range shown {
		if strings.Contains(text, sign) {
			return ""
		}
	}
	return fmt.Sprintf("%d of %d calls failed, first %s: %s", count, l.made+f.refused, f.tool, f.first)
}
