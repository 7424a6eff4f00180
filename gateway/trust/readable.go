package trust

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// lineWidth is where lines of a readable definition are broken, in runes.
const lineWidth = 100

// Diff returns a unified diff of the readable definitions, or the whole new definition
// if there is no old one. It is safe for a terminal: invisible characters are written
// as <U+200B>.
func (h Held) Diff() string {
	now := Readable(h.New)
	if h.Old == nil {
		return now
	}
	text := string(diff.Diff("pinned", []byte(Readable(h.Old)), "now", []byte(now)))
	_, text, _ = strings.Cut(text, "\n") // "diff pinned now" is not part of a unified diff
	return text
}

// Readable formats a definition that [Canonical] wrote, with one sentence per line.
func Readable(definition json.RawMessage) string {
	var d struct {
		Name, Title, Description  string
		Annotations               json.RawMessage
		InputSchema, OutputSchema json.RawMessage
	}
	if err := json.Unmarshal(definition, &d); err != nil {
		return Visible(string(definition)) + "\n"
	}
	var b strings.Builder
	section := func(name, text string) {
		if text == "" {
			return
		}
		b.WriteString(name + ":\n")
		for line := range strings.Lines(text) {
			b.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	section("name", Visible(d.Name))
	section("title", Visible(d.Title))
	section("description", sentences(Visible(d.Description)))
	section("annotations", indent(d.Annotations))
	section("input", indent(d.InputSchema))
	section("output", indent(d.OutputSchema))
	return b.String()
}

// indent returns indented JSON, "" for null.
func indent(data json.RawMessage) string {
	var b bytes.Buffer
	if string(data) == "null" || json.Indent(&b, data, "", "  ") != nil {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(wrap(Visible(strings.TrimRight(line, "\n")), "      "))
	}
	return out.String()
}

// sentences puts each sentence on its own line, so that a diff shows the changed ones.
func sentences(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for sentence := range strings.SplitAfterSeq(strings.TrimRight(line, "\n"), ". ") {
			b.WriteString(wrap(strings.TrimRight(sentence, " "), "  "))
		}
	}
	return b.String()
}

// wrap breaks a line between words; what follows is indented.
func wrap(line, indent string) string {
	var b strings.Builder
	for utf8.RuneCountInString(line) > lineWidth {
		runes := []rune(line)
		at := strings.LastIndexByte(string(runes[:lineWidth]), ' ')
		if at <= len(indent) {
			at = len(string(runes[:lineWidth]))
		}
		b.WriteString(line[:at] + "\n")
		line = indent + strings.TrimLeft(line[at:], " ")
	}
	return b.String() + line + "\n"
}
