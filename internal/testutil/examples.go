package testutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Example is a fenced block of a page.
type Example struct {
	// Section is the text of the last heading of level 2, Language what follows the fence.
	Section, Language, Text string
}

// Examples returns the fenced blocks of a page, which is a path below the module's root. It fails the test if there are none.
func Examples(tb testing.TB, page string) (found []Example) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(ModuleRoot(tb), filepath.FromSlash(page)))
	if err != nil {
		tb.Fatal(err)
	}
	section, open := "", -1
	for line := range strings.Lines(string(text)) {
		heading, isHeading := strings.CutPrefix(line, "## ")
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open < 0:
			open = len(found)
			found = append(found, Example{Section: section, Language: strings.TrimSpace(language)})
		case isFence:
			open = -1
		case open >= 0:
			found[open].Text += line
		case isHeading:
			section = strings.TrimSpace(heading)
		}
	}
	if len(found) == 0 || open >= 0 {
		tb.Fatalf("%s has no examples, or one without an end", page)
	}
	return found
}
