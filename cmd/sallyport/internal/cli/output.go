package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"sallyport/internal/lists"
	"sallyport/internal/sanitize"
	"sallyport/internal/terminal"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && terminal.IsTerminal(f)
}

// Clean makes text safe for a terminal: it removes all invisible characters except
// newlines and tabs. Unlike [sanitize.Text] it does not truncate.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && sanitize.Hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Print writes text to stdout, cleaned, as it may come from upstreams, and with a newline at its end.
func (a *App) Print(text string) error {
	_, err := io.WriteString(a.Out(), strings.TrimRight(Clean(text), "\n")+"\n")
	return err
}

// PrintFinding is Print for text that begins with ok, warn or FAIL, which have colours on a terminal.
func (a *App) PrintFinding(text string) error {
	_, err := io.WriteString(a.Out(), paint(a, a.Stdout, strings.TrimRight(Clean(text), "\n")+"\n"))
	return err
}

// Write writes the output of a program: unchanged to a pipe or a file, cleaned to a terminal.
func Write(w io.Writer, text string) error {
	if IsTerminal(w) {
		text = Clean(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// PrintJSON writes one JSON value to stdout, indented. Invisible characters are escaped.
func (a *App) PrintJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(lists.FillNil(v)); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err := io.WriteString(a.Out(), EscapeHidden(b.String()))
	return err
}

// PrintLine writes one JSON value to stdout, in one line.
func (a *App) PrintLine(v any) error {
	data, err := json.Marshal(lists.FillNil(v))
	if err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err = io.WriteString(a.Out(), EscapeHidden(string(data))+"\n")
	return err
}

// EscapeHidden makes JSON safe to show without changing its value: it escapes invisible
// runes, which occur only in strings.
func EscapeHidden(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '\n' || !sanitize.Hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
