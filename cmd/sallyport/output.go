package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"sallyport/internal/lists"
	"sallyport/internal/plain"
)

// isTerminal reports whether a stream of ours is one.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isTTY(f)
}

// clean makes text fit for a terminal: newlines and tabs stay, all else that is
// not seen goes. Unlike [plain.Text] it cuts nothing.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && plain.Hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// print writes text that may hold words of upstreams to stdout, with a newline at its end.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.stdout, strings.TrimRight(clean(text), "\n")+"\n")
	return err
}

// raw writes what a program printed: as it is for a pipe or a file, clean for a terminal.
func raw(w io.Writer, text string) error {
	if isTerminal(w) {
		text = clean(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// printJSON writes one JSON value to stdout. What a terminal would not show is escaped.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(lists.Filled(v)); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err := io.WriteString(a.stdout, escapeHidden(b.String()))
	return err
}

// printLine writes one JSON value to stdout, in one line.
func (a *app) printLine(v any) error {
	data, err := json.Marshal(lists.Filled(v))
	if err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	_, err = io.WriteString(a.stdout, escapeHidden(string(data))+"\n")
	return err
}

// escapeHidden keeps JSON the same and makes it safe to show: runes that are not
// seen can stand in strings only, where \u is as good.
func escapeHidden(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '\n' || !plain.Hidden(r):
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
