package report

import (
	"slices"

	"sallyport/bench/ledger"
	"sallyport/bench/suite"
)

const (
	direct = string(suite.Direct)
	search = string(suite.Search)
	code   = string(suite.Code)
)

// weighing is one way to add tokens up.
type weighing struct {
	name  string
	rates ledger.Rates
}

func plain() weighing { return weighing{"no cache", ledger.Rates{Cached: 1, Stored: 1, Output: 1}} }
func cached() weighing {
	return weighing{"cached reads at 0.1", ledger.Rates{Cached: .1, Stored: 1, Output: 1}}
}

func warm() weighing {
	return weighing{"definitions cached before", ledger.Rates{Cached: .1, Stored: 1, Output: 1, Warm: true}}
}

// weighings are all that are shown. The last ones are as lists of prices are: those of Anthropic and OpenAI
// have output at four to eight times the price of input, and Anthropic's has storing at 1.25.
func weighings() []weighing {
	return []weighing{
		plain(), cached(), warm(),
		{"and output at 5", ledger.Rates{Cached: .1, Stored: 1, Output: 5, Warm: true}},
		{"and storing at 1.25", ledger.Rates{Cached: .1, Stored: 1.25, Output: 5, Warm: true}},
	}
}

// pair compares code mode with another one, over the tasks that are valid in both.
type pair struct {
	n           int
	other, code float64
	// parts are what code mode costs of the other, task by task.
	parts []float64
}

// pairs adds the tasks of one size up, those of one kind, or of all for "".
func (r *Results) pairs(other string, servers int, encoding, kind string, w weighing) (p pair) {
	for _, task := range r.tasks(servers) {
		a, b := r.of(task, other, servers, encoding), r.of(task, code, servers, encoding)
		if a.Valid() && b.Valid() && (kind == "" || a.Kind == kind) {
			p.n++
			p.other += a.Weighed(w.rates)
			p.code += b.Weighed(w.rates)
			p.parts = append(p.parts, b.Weighed(w.rates)/a.Weighed(w.rates))
		}
	}
	return p
}

// loses are the tasks of one size in which code mode costs more than another mode does, or is not valid where that is.
func (r *Results) loses(other string, servers int, encoding string, w weighing) (names []string, of int) {
	for _, task := range r.tasks(servers) {
		a, b := r.of(task, other, servers, encoding), r.of(task, code, servers, encoding)
		if !a.Valid() {
			continue
		}
		of++
		if !b.Valid() || b.Weighed(w.rates) > a.Weighed(w.rates) {
			names = append(names, task)
		}
	}
	return names, of
}

// evenAt is how many tokens of definitions make direct calling as expensive as code mode, which hardly depends on
// them: each turn reads them, at the rate that it reads. It is below zero where code mode is cheaper even
// without any, because of what flows between calls.
func evenAt(direct, code *Line, w weighing) float64 {
	without := *direct
	without.Read -= len(without.Turns) * direct.Definitions
	without.Cached -= max(0, len(without.Turns)-1) * direct.Definitions
	without.Definitions = 0
	each := w.rates.Cached * float64(len(direct.Turns))
	if !w.rates.Warm {
		each += w.rates.Stored - w.rates.Cached
	}
	return (code.Weighed(w.rates) - without.Weighed(w.rates)) / each
}

// median of what a task costs at one size, over the tasks that have an answer in all modes at all sizes
// but the smallest, where some tasks are not asked. Contexts that do not fit a window are in it: it is what they would cost.
func (r *Results) median(mode string, servers int, encoding string, w weighing) float64 {
	var all []float64
	for _, task := range r.tasks(servers) {
		if l := r.of(task, mode, servers, encoding); r.everywhere(task, encoding) {
			all = append(all, l.Weighed(w.rates))
		}
	}
	return middle(all)
}

// middle is the median, 0 of nothing.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// everywhere reports whether a task was answered right in all modes and sizes above one server.
func (r *Results) everywhere(task, encoding string) bool {
	for _, s := range r.Sizes {
		for _, mode := range suite.Modes() {
			if l := r.of(task, string(mode), s.Servers, encoding); s.Servers > 1 && (l == nil || !l.Correct) {
				return false
			}
		}
	}
	return true
}
