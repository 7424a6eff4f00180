package local

import (
	"sallyport/bench/agent"
	"sallyport/bench/tokencount"
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
	// Even is from how many turns on it is less here than directly, and stays so; 0 is never, as far as 100 turns. Then Last is
	// the last turn after which it was, as it may be while contexts are too short to be cached; 0 is none.
	Even Even `json:"break_even_turns"`
	Last Even `json:"last_cheaper_turn"`
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
func (b *Bench) conversations(ours tokencount.Transcript, all []tokencount.Definition, p *probes) (list []Conversation, err error) {
	direct := &tokencount.Transcript{Definitions: all, Turns: make([]tokencount.Turn, mostTurns)}
	ours.Turns = append([]tokencount.Turn{p.typical}, make([]tokencount.Turn, mostTurns)...)
	search := &tokencount.Transcript{Definitions: []tokencount.Definition{agent.SearchDefinition()}, Turns: append([]tokencount.Turn{p.deferred}, make([]tokencount.Turn, mostTurns)...)}
	for _, v := range []struct {
		name    string
		counter tokencount.Counter
	}{{"o200k_base", b.o200k}, {"cl100k_base", b.cl100k}} {
		var steps [3][]tokencount.Step
		for i, t := range []*tokencount.Transcript{direct, search, &ours} {
			c, err := t.Count(v.counter)
			if err != nil {
				return nil, err
			}
			steps[i] = c.Turns
		}
		c := Conversation{
			Vocabulary: v.name, Turns: Turns,
			Direct: costOf(steps[0][:Turns]), Search: costOf(steps[1][:Turns+1]), Here: costOf(steps[2][:Turns+1]),
		}
		c.Even.Plain, c.Last.Plain = even(steps[0], steps[2], func(c Cost) float64 { return c.Plain })
		c.Even.Cached, c.Last.Cached = even(steps[0], steps[2], func(c Cost) float64 { return c.Cached })
		list = append(list, c)
	}
	return list, nil
}

func costOf(steps []tokencount.Step) (c Cost) {
	sum := tokencount.Counts{Turns: steps}
	for _, s := range steps {
		sum.Read, sum.Cached, sum.Written = sum.Read+s.Read, sum.Cached+s.Cached, sum.Written+s.Written
	}
	return Cost{Plain: float64(sum.Total()), Cached: sum.WeightedCost(tokencount.Rates{Cached: Cached, Stored: 1, Output: 1, Minimum: tokencount.CacheMinimum})}
}

// even finds the turn from which on ours, with its turn more, has cost less; or else the last one after which it had.
func even(direct, ours []tokencount.Step, of func(Cost) float64) (from, last int) {
	for n := 1; n <= len(direct); n++ {
		switch less := of(costOf(ours[:n+1])) < of(costOf(direct[:n])); {
		case less && from == 0:
			from, last = n, n
		case less:
			last = n
		default:
			from = 0
		}
	}
	if from > 0 {
		last = 0
	}
	return from, last
}
