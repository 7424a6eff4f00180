// Package stats says what many measurements of one thing come to, alone and
// next to those of something bare that was measured in the same run.
package stats

import (
	"math"
	"slices"
)

// Summary is what many measurements of one thing come to, in the unit that they were taken in.
type Summary struct {
	N   int     `json:"n"`
	Min float64 `json:"min"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Summarize takes nearest ranks, so each figure is one that was measured: with fewer than 100 of them p99 is the largest.
// Of no values it is all zeros. The values stay as they are.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := func(share float64) float64 {
		return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
	}
	return Summary{N: len(sorted), Min: sorted[0], P50: rank(.5), P99: rank(.99), Max: sorted[len(sorted)-1]}
}

// Compared is a summary compared with that of its bare twin: the least that could do the same work, measured in the same run.
type Compared struct {
	Summary
	Bare *Summary `json:"bare,omitempty"`
	// Ratio is P50 to that of Bare: below 1 is faster. It is 0 without a twin.
	Ratio float64 `json:"ratio,omitempty"`
}

// CompareRates is Compare of what is done in a time: the ratio is that of the times all the same, so below 1 is faster.
func CompareRates(values, bare []float64) Compared {
	c := Compare(values, bare)
	if c.Ratio > 0 {
		c.Ratio = 1 / c.Ratio
	}
	return c
}

// Compare summarizes measurements and those of their bare twin, of which there may be none.
func Compare(values, bare []float64) Compared {
	c := Compared{Summary: Summarize(values)}
	if len(bare) == 0 {
		return c
	}
	twin := Summarize(bare)
	c.Bare = &twin
	if twin.P50 > 0 {
		c.Ratio = c.P50 / twin.P50
	}
	return c
}
