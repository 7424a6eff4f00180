package main

import (
	"math"
	"slices"
)

// summary is what many measurements of one thing come to, in the unit of their row.
type summary struct {
	N   int     `json:"n"`
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// summarize takes nearest ranks, so each figure is one that was measured: with fewer than 100 of them p99 is the largest.
func summarize(values []float64) summary {
	if len(values) == 0 {
		return summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := func(share float64) float64 {
		return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
	}
	return summary{N: len(sorted), Min: sorted[0], P50: rank(.5), P99: rank(.99), Max: sorted[len(sorted)-1]}
}

// row is one line of the table.
type row struct {
	Case     string `json:"case"`
	Language string `json:"language,omitempty"`
	Unit     string `json:"unit"`
	summary
	// Bare is the interpreter alone, measured in between.
	Bare *summary `json:"bare,omitempty"`
	// Ratio is P50 to that of Bare.
	Ratio float64 `json:"ratio,omitempty"`
	Bars  []bar   `json:"bars,omitempty"`
	Note  string  `json:"note,omitempty"`
}

// bar is what a figure should come to.
type bar struct {
	What  string  `json:"what"`
	Limit float64 `json:"limit"`
	Got   float64 `json:"got"`
	// AtLeast says that more is better.
	AtLeast bool `json:"at_least,omitempty"`
	Met     bool `json:"met"`
}

func atMost(what string, limit, got float64) bar {
	return bar{What: what, Limit: limit, Got: got, Met: got <= limit}
}

func atLeast(what string, limit, got float64) bar {
	return bar{What: what, Limit: limit, Got: got, AtLeast: true, Met: got >= limit}
}

// compared is a row with the interpreter alone beside it.
func compared(name string, l language, ours, bare []float64) row {
	r := row{Case: name, Language: l.name, Unit: "ms", summary: summarize(ours)}
	if len(bare) > 0 {
		alone := summarize(bare)
		r.Bare, r.Ratio = &alone, r.P50/alone.P50
	}
	return r
}

// steady is the bar on how far the slowest may be from the usual.
func steady(s summary) bar { return atMost("p99/p50", 3, s.P99/s.P50) }

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
