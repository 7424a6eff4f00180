package flowtest

import (
	"fmt"
	"io"
	"strings"

	"sallyport/internal/sanitize"
)

// maxLine limits a line of a report.
const maxLine = 2000

// Report writes the results of tests: a line for each test with its failures below, and a summary.
// Texts from definitions, tools and tests are sanitized.
func Report(w io.Writer, results []Result) error {
	failed := 0
	for _, r := range results {
		if !r.OK() {
			failed++
		}
		if _, err := io.WriteString(w, r.text()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s\n", count(len(results), "test"), map[bool]string{true: "all went well", false: fmt.Sprint(failed, " failed")}[failed == 0])
	return err
}

// text formats a result.
func (r Result) text() string {
	var out strings.Builder
	word := "ok  "
	if !r.OK() {
		word = "FAIL"
	}
	fmt.Fprintf(&out, "%s  %s: %s (%.2f s)\n", word, sanitize.Line(r.File, maxLine), sanitize.Line(r.Test, 200), r.Seconds)
	for _, f := range r.Failures {
		for i, line := range strings.Split(f.Message, "\n") {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			if line = indent + sanitize.Text(line, maxLine); i == 0 {
				fmt.Fprintf(&out, "      %s:%d: %s\n", sanitize.Line(r.File, maxLine), f.Line, line)
			} else {
				fmt.Fprintf(&out, "        %s\n", line)
			}
		}
	}
	return out.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
