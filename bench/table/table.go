// Package table is what a benchmark has found: a line of its table for each thing that it measures, with the targets
// that are met and missed.
package table

import (
	"fmt"
	"strings"

	"sallyport/bench/stats"
)

// Row is one line of the table.
type Row struct {
	Case     string `json:"case"`
	Language string `json:"language,omitempty"`
	Unit     string `json:"unit"`
	stats.Compared
	Bars []Bar  `json:"bars,omitempty"`
	Note string `json:"note,omitempty"`
}

// Bar is a target for a figure.
type Bar struct {
	What  string  `json:"what"`
	Limit float64 `json:"limit"`
	Got   float64 `json:"got"`
	// AtLeast says that more is better.
	AtLeast bool `json:"at_least,omitempty"`
	Met     bool `json:"met"`
}

// String returns what was measured, the target, and whether it is met.
func (b Bar) String() string {
	word := "met"
	if !b.Met {
		word = "MISSED"
	}
	return fmt.Sprintf("%s %.4g %s %g %s", b.What, b.Got, b.Sign(), b.Limit, word)
}

// Sign is the one between the figure and the target.
func (b Bar) Sign() string {
	if b.AtLeast {
		return ">="
	}
	return "<="
}

// AtMost is a target that a figure must not exceed.
func AtMost(what string, limit, got float64) Bar {
	return Bar{What: what, Limit: limit, Got: got, Met: got <= limit}
}

// AtLeast is a target that a figure must reach.
func AtLeast(what string, limit, got float64) Bar {
	return Bar{What: what, Limit: limit, Got: got, AtLeast: true, Met: got >= limit}
}

// Misses counts the targets that are missed.
func Misses(rows []Row) (missed int) {
	for _, r := range rows {
		for _, b := range r.Bars {
			if !b.Met {
				missed++
			}
		}
	}
	return missed
}

// Tally says how many targets are met.
func Tally(rows []Row) string {
	count := 0
	for _, r := range rows {
		count += len(r.Bars)
	}
	return fmt.Sprintf("%d of %d targets are met", count-Misses(rows), count)
}

const columns = "%-60s %-10s %-5s %9s %9s %9s %5s %9s %7s  %s\n"

// Text is a line for each row, below the heading if it is to have one.
func Text(rows []Row, heading bool) string {
	var b strings.Builder
	if heading {
		fmt.Fprintf(&b, columns, "case", "language", "unit", "min", "p50", "p99/max", "n", "bare p50", "ratio", "bars")
	}
	for _, r := range rows {
		bare, ratio := r.Twin()
		fmt.Fprintf(&b, columns, r.Case, r.Language, r.Unit, Figure(r.Min), Figure(r.P50), Figure(r.P99), fmt.Sprint(r.N), bare, ratio, r.Results())
	}
	return b.String()
}

// Figure is a figure as tables have it.
func Figure(f float64) string {
	if f >= 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// Results returns which bars are met.
func (r Row) Results() string {
	var parts []string
	for _, b := range r.Bars {
		parts = append(parts, b.String())
	}
	return strings.Join(parts, "; ")
}

// Twin returns the cells of the bare twin and of the ratio, empty if there is none.
func (r Row) Twin() (bare, ratio string) {
	if r.Bare == nil {
		return "", ""
	}
	return Figure(r.Bare.P50), fmt.Sprintf("%.2f", r.Ratio)
}

// Name is the case with its language.
func (r Row) Name() string {
	if r.Language == "" {
		return r.Case
	}
	return r.Case + ", " + r.Language
}

// Heading is the heading of a table of a document, for the lines of [Row.Line].
const Heading = "| | unit | n | min | median | p99 (max if n < 100) | bare median | ratio | target |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"

// Line is the row in a table of a document.
func (r Row) Line() string {
	bare, ratio := r.Twin()
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", r.Name(), r.Unit, r.N, Figure(r.Min), Figure(r.P50), Figure(r.P99), bare, ratio, r.Results())
}
