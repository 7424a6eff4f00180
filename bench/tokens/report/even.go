package report

import (
	"slices"
	"sort"

	"sallyport/bench/tokencount"
)

// most exceeds any real number of definition tokens.
const most = 1 << 30

// BreakEven is the least number of tokens of definitions from which on direct calling, which cost direct with those that
// it had, costs at least as much as code mode does: with that many and with any larger number. It is 0 where code mode
// is cheaper even next to none; ok is false where there is no such number.
func BreakEven(direct tokencount.Counts, code float64, rates tokencount.Rates) (tokens int, ok bool) {
	dear := func(n int) bool { return withDefinitions(direct, n).WeightedCost(rates) >= code }
	pieces := append(drops(direct, rates), most)
	tokens = most
	for i := len(pieces) - 2; i >= 0; i-- {
		from, to := pieces[i], pieces[i+1]
		least := from + sort.Search(to-from, func(n int) bool { return dear(from + n) })
		if least == to {
			break // what comes before is of no interest: here it is too cheap to the end
		}
		if tokens = least; least > from {
			break
		}
	}
	return tokens, tokens < most
}

// drops are where the cost of direct calling falls as definitions grow, which is where one more turn has
// enough to be cached at all, and 0. In between it only rises.
func drops(direct tokencount.Counts, rates tokencount.Rates) []int {
	list := []int{0}
	for i, step := range direct.Turns {
		rest := step.Cached - direct.Definitions
		if i == 0 {
			rest = direct.Instructions
		}
		if at := rates.Minimum - rest; at > 0 {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// withDefinitions returns the counts of the same task with another number of definition tokens.
func withDefinitions(c tokencount.Counts, definitions int) tokencount.Counts {
	more := definitions - c.Definitions
	c.Definitions = definitions
	c.Turns = slices.Clone(c.Turns)
	for i := range c.Turns {
		c.Turns[i].Read += more
		c.Read += more
		if i > 0 {
			c.Turns[i].Cached += more
			c.Cached += more
		}
	}
	return c
}
