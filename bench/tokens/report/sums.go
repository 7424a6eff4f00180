package report

import (
	"sallyport/bench/stats"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

const (
	direct = string(suite.Direct)
	search = string(suite.Search)
	code   = string(suite.Code)
)

// weighing is one way to add tokens up.
type weighing struct {
	name  string
	rates tokencount.Rates
}

func plain() weighing { return weighing{"no cache", tokencount.Rates{Cached: 1, Stored: 1, Output: 1}} }
func cacheWeighing() weighing {
	return weighing{"cached reads at 0.1", tokencount.Rates{Cached: .1, Stored: 1, Output: 1, Minimum: tokencount.CacheMinimum}}
}

func warm() weighing {
	return weighing{"definitions cached before", tokencount.Rates{Cached: .1, Stored: 1, Output: 1, Minimum: tokencount.CacheMinimum, Warm: true}}
}

// priceWeighing is nearest to real prices: Anthropic and OpenAI charge four to eight times as much for output as for input,
// and Anthropic charges 1.25 for storing.
func priceWeighing() weighing {
	return weighing{"and storing at 1.25", tokencount.Rates{Cached: .1, Stored: 1.25, Output: 5, Minimum: tokencount.CacheMinimum, Warm: true}}
}

// weighings are all that are shown, each with one thing more than the one before.
func weighings() []weighing {
	output := priceWeighing()
	output.name, output.rates.Stored = "and output at 5", 1
	return []weighing{plain(), cacheWeighing(), warm(), output, priceWeighing()}
}

// pair compares code mode with another one, over the tasks that are valid in the other.
type pair struct {
	n           int
	other, code float64
	// parts are what is saved of the other's, task by task.
	parts []float64
}

// pairs adds the tasks of one size up, those of one kind, or of all for "".
func (r *Results) pairs(other string, servers int, encoding, kind string, w weighing) (p pair) {
	for _, task := range r.tasks(servers) {
		a, b := r.of(task, other, servers, encoding), r.of(task, code, servers, encoding)
		if a.Valid() && b != nil && (kind == "" || a.Kind == kind) {
			theirs, ours := a.WeightedCost(w.rates), codeCost(b, a, w)
			p.n++
			p.other += theirs
			p.code += ours
			p.parts = append(p.parts, 1-ours/theirs)
		}
	}
	return p
}

// codeCost returns the cost of a task in code mode. An invalid one is repeated in the other mode.
func codeCost(code, other *Line, w weighing) float64 {
	if code.Valid() {
		return code.WeightedCost(w.rates)
	}
	return code.WeightedCost(w.rates) + other.WeightedCost(w.rates)
}

// loses are the tasks of one size in which code mode costs more than another mode does, or is not valid where that is.
func (r *Results) loses(other string, servers int, encoding string, w weighing) (names []string, of int) {
	for _, task := range r.tasks(servers) {
		a, b := r.of(task, other, servers, encoding), r.of(task, code, servers, encoding)
		if !a.Valid() {
			continue
		}
		of++
		if !b.Valid() || b.WeightedCost(w.rates) > a.WeightedCost(w.rates) {
			names = append(names, task)
		}
	}
	return names, of
}

// median of what a task costs at one size, over [Results.commonTasks]. Contexts that do not fit a window are in it: it is
// what they would cost.
func (r *Results) median(mode string, servers int, encoding string, w weighing) float64 {
	var all []float64
	for _, task := range r.commonTasks(encoding) {
		all = append(all, r.of(task, mode, servers, encoding).WeightedCost(w.rates))
	}
	return middle(all)
}

// middle is the median, of an even number the lower of both in the middle: of savings, what is not too much.
func middle(all []float64) float64 { return stats.Summarize(all).P50 }

// commonTasks returns the tasks that were played at all sizes, and answered right in all modes at each: the points of
// one curve are of the same tasks.
func (r *Results) commonTasks(encoding string) (names []string) {
	for _, task := range r.everyTask() {
		if r.right(task, encoding) {
			names = append(names, task)
		}
	}
	return names
}

func (r *Results) right(task, encoding string) bool {
	for _, s := range r.Sizes {
		for _, mode := range suite.Modes() {
			if l := r.of(task, string(mode), s.Servers, encoding); l == nil || !l.Correct {
				return false
			}
		}
	}
	return true
}
