// Package walkthrough reads pages in Markdown that show commands and what they print, and compares that with what they
// really print.
package walkthrough

import (
	"fmt"
	"regexp"
	"strings"
)

// Step is a block of commands of a page.
type Step struct {
	// Commands are lines for a shell. Fails says that they end with a status other than 0.
	Commands string
	Fails    bool
	// Prints is what they print, if Compared.
	Prints   string
	Compared bool
}

var fence = regexp.MustCompile("(?ms)^```([^\n]+)\n(.*?)^```$")

// Steps returns the blocks "sh" and "sh fails" of a page. A block "text" after one is what it prints; no other kind may be
// there.
func Steps(page string) (all []Step, err error) {
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		switch kind, body := block[1], block[2]; {
		case kind == "sh", kind == "sh fails":
			all = append(all, Step{Commands: body, Fails: kind == "sh fails"})
		case kind == "text" && len(all) > 0 && !all[len(all)-1].Compared:
			all[len(all)-1].Prints, all[len(all)-1].Compared = body, true
		default:
			return nil, fmt.Errorf("a block of %q follows no command:\n%s", kind, body)
		}
	}
	return all, nil
}

// Matches reports whether commands printed what their step says. Three dots in a line are any text, and a line of three dots
// is any lines. Times, durations, ids and the width of columns may differ.
func (s Step) Matches(printed string) bool {
	return !s.Compared || pattern(s.Prints).MatchString(normalize(printed))
}

func pattern(says string) *regexp.Regexp {
	var p strings.Builder
	p.WriteString(`\A`)
	for line := range strings.Lines(normalize(says)) {
		if line == "...\n" {
			p.WriteString(`(?:.*\n)*`)
			continue
		}
		p.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`))
	}
	return regexp.MustCompile(p.String() + `\z`)
}

// passing is what differs from one run to the next.
var passing = []struct {
	what *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(µs|ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`\.+ DURATION`), "DURATION"}, // the dots of make
	{regexp.MustCompile(`\b(e|a|r|t)-[0-9a-z]{8,}\b`), "ID"},
	{regexp.MustCompile(`\bsp_[0-9A-Za-z_]+`), "TOKEN"},
	{regexp.MustCompile(` +`), " "}, // columns are as wide as what is in them
	{regexp.MustCompile(` +\n`), "\n"},
}

func normalize(text string) string {
	for _, p := range passing {
		text = p.what.ReplaceAllString(text, p.to)
	}
	return text
}
