// Package refpage writes the pages of docs/reference, which tests make from the code. Its main type is [Page]. A
// test that calls [Page.Check] fails if the page is stale, and rewrites it with -update.
package refpage

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/golden"
)

// maxWidth is the maximum length of a line, in characters. Only rows of tables and lines of code may be longer.
const maxWidth = 120

// Page is a page of docs/reference.
type Page struct {
	name, command string
	text          strings.Builder
}

// New starts a page. Name is its file, test the test that makes it, in the package of that path in the module.
func New(name, title, pkg, test string) *Page {
	p := &Page{name: name, command: fmt.Sprintf("go test ./%s -run '^%s$' -update", pkg, test)}
	fmt.Fprintf(&p.text, "# %s\n\n<!-- Generated. To update: %s -->\n", title, p.command)
	return p
}

// Heading writes a heading; level 2 is below the title.
func (p *Page) Heading(level int, text string) {
	fmt.Fprintf(&p.text, "\n%s %s\n", strings.Repeat("#", level), text)
}

// Text writes a paragraph of Markdown.
func (p *Page) Text(markdown string) { p.text.WriteString("\n" + wrap("", markdown)) }

// List writes a list of items in Markdown.
func (p *Page) List(items []string) {
	if len(items) == 0 {
		return
	}
	p.text.WriteString("\n")
	for _, item := range items {
		p.text.WriteString(wrap("- ", item))
	}
}

// Table writes a table of cells in Markdown.
func (p *Page) Table(head []string, rows [][]string) {
	p.text.WriteString("\n" + row(head) + "|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, cells := range rows {
		p.text.WriteString(row(cells))
	}
}

func row(cells []string) string {
	var out strings.Builder
	out.WriteString("|")
	for _, cell := range cells {
		out.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
	}
	return strings.ReplaceAll(out.String(), "|  |", "| |") + "\n"
}

// Code writes a block of code, without its common indent.
func (p *Page) Code(language, text string) {
	fmt.Fprintf(&p.text, "\n```%s\n%s\n```\n", language, dedent(strings.Trim(text, "\n")))
}

func dedent(text string) string {
	lines, least := strings.Split(text, "\n"), -1
	for _, line := range lines {
		if indent := len(line) - len(strings.TrimLeft(line, " ")); strings.TrimSpace(line) != "" && (least < 0 || indent < least) {
			least = indent
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(len(line), max(0, least)):], " ")
	}
	return strings.Join(lines, "\n")
}

// Check fails the test if the file in docs/reference differs from the page, or rewrites it if [golden.Update].
func (p *Page) Check(tb testing.TB) {
	tb.Helper()
	path := filepath.Join(testutil.ModuleRoot(tb), "docs", "reference", p.name)
	if data, err := os.ReadFile(path); !golden.Update() && (err != nil || string(data) != p.text.String()) {
		tb.Errorf("docs/reference/%s is stale; this rewrites it: %s", p.name, p.command)
	}
	golden.Check(tb, path, p.text.String())
}

var (
	// word matches text without spaces outside of code spans.
	word = regexp.MustCompile("(`[^`]*`|[^\\s`]|`)+")
	// marker matches a word that Markdown takes for the start of a block at the start of a line.
	marker = regexp.MustCompile(`^([-+*>]|#+|[0-9]+[.)]|=+|-+)$`)
)

// wrap formats a paragraph with the prefix before its first line.
func wrap(prefix, text string) string {
	indent := strings.Repeat(" ", len(prefix))
	var out strings.Builder
	line := prefix
	for _, w := range word.FindAllString(text, -1) {
		empty := strings.TrimSpace(line) == strings.TrimSpace(prefix) || line == indent
		if !empty && len([]rune(line+" "+w)) > maxWidth && !marker.MatchString(w) {
			out.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += w
	}
	return out.String() + line + "\n"
}

// Quote returns text as a code span.
func Quote(text string) string { return "`" + text + "`" }

// QuoteAll returns texts as code spans, separated by commas.
func QuoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = Quote(text)
	}
	return strings.Join(quoted, ", ")
}

// Escape returns text as Markdown. It may have code spans.
func Escape(text string) string { return escaper.Replace(text) }

var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `<`, `\<`)

// Sentence returns text with a capital letter and a period.
func Sentence(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.ContainsAny(text[len(text)-1:], ".:!?") {
		return text
	}
	return text + "."
}
