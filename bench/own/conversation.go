package own

import (
	"sallyport/bench/agent"
	"sallyport/bench/ledger"
)

const (
	// Turns is how long the conversation is that is reckoned.
	Turns = 10
	// mostTurns is up to where a break-even is looked for.
	mostTurns = 100
	// Cached is what a token costs that is read from a cache.
	Cached = 0.1
)

// Conversation is what definitions and one search cost over some turns. What people and models say besides, and what tools
// answer, is the same in all modes here, and in none.
type Conversation struct {
	Vocabulary string `json:"vocabulary"`
	Turns      int    `json:"turns"`
	// Here and Search have one more turn, in which the search is made.
	Direct Cost `json:"direct"`
	Search Cost `json:"tool_search"`
	Here   Cost `json:"here"`
	// Even is from how many turns on it is less here than directly; 0 is never, as far as 100 turns.
	Even Even `json:"break_even_turns"`
}

// Cost is in tokens that are read and in no cache.
type Cost struct {
	// Plain is without a cache; Cached is with one, where a token that is read again counts as a tenth.
	Plain  float64 `json:"plain"`
	Cached float64 `json:"cached"`
}

// Even is in turns.
type Even struct {
	Plain  int `json:"plain"`
	Cached int `json:"cached"`
}

// conversations reckons one for each vocabulary.
func (b *Bench) conversations(ours ledger.Transcript, all []ledger.Definition, p *probes) (list []Conversation, err error) {
	direct := &ledger.Transcript{Definitions: all, Turns: make([]ledger.Turn, mostTurns)}
	ours.Turns = append([]ledger.Turn{p.typical}, make([]ledger.Turn, mostTurns)...)
	search := &ledger.Transcript{Definitions: []ledger.Definition{agent.SearchDefinition()}, Turns: append([]ledger.Turn{p.deferred}, make([]ledger.Turn, mostTurns)...)}
	for _, v := range []struct {
		name    string
		counter ledger.Counter
	}{{"o200k_base", b.o200k}, {"cl100k_base", b.cl100k}} {
		var steps [3][]ledger.Step
		for i, t := range []*ledger.Transcript{direct, search, &ours} {
			c, err := t.Count(v.counter)
			if err != nil {
				return nil, err
			}
			steps[i] = c.Turns
		}
		list = append(list, Conversation{
			Vocabulary: v.name, Turns: Turns,
			Direct: costOf(steps[0][:Turns]), Search: costOf(steps[1][:Turns+1]), Here: costOf(steps[2][:Turns+1]), Even: even(steps[0], steps[2]),
		})
	}
	return list, nil
}

func costOf(steps []ledger.Step) (c Cost) {
	sum := ledger.Counts{Turns: steps}
	for _, s := range steps {
		sum.Read, sum.Cached, sum.Written = sum.Read+s.Read, sum.Cached+s.Cached, sum.Written+s.Written
	}
	return Cost{Plain: float64(sum.Total()), Cached: sum.Weighed(ledger.Rates{Cached: Cached, Stored: 1, Output: 1, Minimum: ledger.CacheMinimum})}
}

// even finds the first turn after which ours, with its turn more, has cost less.
func even(direct, ours []ledger.Step) (e Even) {
	for n := len(direct); n > 0; n-- {
		d, h := costOf(direct[:n]), costOf(ours[:n+1])
		if h.Plain < d.Plain {
			e.Plain = n
		}
		if h.Cached < d.Cached {
			e.Cached = n
		}
	}
	return e
}
