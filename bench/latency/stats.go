package main

import (
	"fmt"

	"sallyport/bench/stats"
)

// row is one line of the table.
type row struct {
	Case     string `json:"case"`
	Language string `json:"language,omitempty"`
	Unit     string `json:"unit"`
	stats.Compared
	Bars []bar  `json:"bars,omitempty"`
	Note string `json:"note,omitempty"`
}

// bar is a target for a figure.
type bar struct {
	What  string  `json:"what"`
	Limit float64 `json:"limit"`
	Got   float64 `json:"got"`
	// AtLeast says that more is better.
	AtLeast bool `json:"at_least,omitempty"`
	Met     bool `json:"met"`
}

// String returns what was measured, the target, and whether it is met.
func (b bar) String() string {
	word := "met"
	if !b.Met {
		word = "MISSED"
	}
	return fmt.Sprintf("%s %.4g %s %g %s", b.What, b.Got, b.sign(), b.Limit, word)
}

func (b bar) sign() string {
	if b.AtLeast {
		return ">="
	}
	return "<="
}

func atMost(what string, limit, got float64) bar {
	return bar{What: what, Limit: limit, Got: got, Met: got <= limit}
}

func atLeast(what string, limit, got float64) bar {
	return bar{What: what, Limit: limit, Got: got, AtLeast: true, Met: got >= limit}
}

// comparedRow returns a row with the interpreter alone for comparison.
func comparedRow(name string, l language, ours, bare []float64) row {
	return row{Case: name, Language: l.name, Unit: "ms", Compared: stats.Compare(ours, bare)}
}

// steady is the bar on how far the slowest may be from the usual.
func steady(s stats.Summary) bar { return atMost("p99/p50", 3, s.P99/s.P50) }

func misses(rows []row) (missed int) {
	for _, r := range rows {
		for _, b := range r.Bars {
			if !b.Met {
				missed++
			}
		}
	}
	return missed
}
