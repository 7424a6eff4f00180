package main

import (
	"sallyport/bench/stats"
	"sallyport/bench/table"
)

type (
	row = table.Row
	bar = table.Bar
)

func atMost(what string, limit, got float64) bar { return table.AtMost(what, limit, got) }

func atLeast(what string, limit, got float64) bar { return table.AtLeast(what, limit, got) }

// comparedRow returns a row with the interpreter alone for comparison.
func comparedRow(name string, l language, ours, bare []float64) row {
	return row{Case: name, Language: l.name, Unit: "ms", Compared: stats.Compare(ours, bare)}
}

// steady is the bar on how far the slowest may be from the usual.
func steady(s stats.Summary) bar { return atMost("p99/p50", 3, s.P99/s.P50) }
