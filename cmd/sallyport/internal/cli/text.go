package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Plural formats a number with a noun in the singular or plural.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// OneLine is like [Cell], but returns "" for an empty text.
func OneLine(text string, most int) string {
	if text == "" {
		return ""
	}
	return Cell(text, most)
}

// OneName returns an error unless there is one argument, a name.
func OneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return Misuse(cmd, "%s takes one NAME", cmd.Name())
	}
	return nil
}

// LastLines returns the last 8 lines of a process's output, cleaned.
func LastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(Clean(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// OrDash formats a number for a table, 0 as "-".
func OrDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
