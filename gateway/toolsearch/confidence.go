package toolsearch

import "slices"

// Confidence is how sure an answer is, in steps that a model can act on.
type Confidence string

// The steps. docs/explanation/benchmarks/search.md has how often answers of each are right.
const (
	// High: call one of the first tools.
	High Confidence = "high"
	// Medium: look at more than the first tool.
	Medium Confidence = "medium"
	// Low: these are only the nearest; search again.
	Low Confidence = "low"
)

// leastHigh is the estimated probability from which the confidence is High.
const leastHigh = 0.6

// rate sets the confidence of an answer with these candidates, which is certain if one is asked for by its name.
func (f *Found) rate(list []candidate) {
	named := slices.ContainsFunc(list, func(c candidate) bool { return c.exact })
	other := len(list) > 0 && list[0].score == 0 // no tool: the query means it
	switch {
	case f.Listing:
	case f.Weak || len(list) == 0:
		f.Confidence = Low
	case named || other || f.right >= leastHigh:
		f.Confidence = High
	default:
		f.Confidence = Medium
	}
}
