package toolcall

import (
	"fmt"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// numbers has the first result of a program that was a number as a text. A program that takes it for a number may be wrong
// without an error: the text "0" is true, and "5" is not equal to 5.
type numbers struct {
	tool tool.ID
	text string
}

// Number records a result that is a number as a text.
func (l *List) Number(id tool.ID, result tool.Result) {
	if len(result.Structured) > 0 || result.IsError || len(result.Content) != 1 || result.Form.Numbers || !tool.IsNumber(result.Content[0].Text) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.numbers.text == "" {
		l.numbers.tool, l.numbers.text = id, sanitize.Line(strings.TrimSpace(result.Content[0].Text), 40)
	}
}

// NumberNote returns a note on a number that a program got as a text, "" if there was none. convert is how the program
// makes a number of it.
func (l *List) NumberNote(convert string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.numbers.text == "" {
		return ""
	}
	return fmt.Sprintf("%s gives text, here %q, which is true and equal to no number: %s", l.numbers.tool, l.numbers.text, convert)
}
