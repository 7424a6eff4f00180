package report

import (
	"fmt"
	"math"
	"slices"

	"sallyport/bench/suite"
)

// tolerance is how much more a task may cost in code mode than in the cheapest other mode.
const tolerance = 1.1

// dearerTask is a task that costs more in code mode than [tolerance] allows.
type dearerTask struct {
	name        string
	code, other *Line
}

// dearer returns the tasks of one size that code mode makes too dear, without a cache.
func (r sections) dearer(servers int, encoding string) (list []dearerTask) {
	for _, task := range r.tasks(servers) {
		mine := r.of(task, code, servers, encoding)
		other := r.cheapestOther(task, servers, encoding)
		if mine != nil && other != nil && float64(mine.Total()) > tolerance*float64(other.Total()) {
			list = append(list, dearerTask{task, mine, other})
		}
	}
	return list
}

// cheapestOther returns the cheapest right answer that is not code mode's, nil if there is none.
func (r sections) cheapestOther(task string, servers int, encoding string) (least *Line) {
	for _, mode := range suite.Modes() {
		l := r.of(task, string(mode), servers, encoding)
		if string(mode) != code && l != nil && l.Valid() && (least == nil || l.Total() < least.Total()) {
			least = l
		}
	}
	return least
}

// dearerTable says which tasks those are, and what the definitions have to do with it.
func (r sections) dearerTable(encoding string) *table {
	t := &table{
		title: "More than 10 % dearer than the cheapest other way",
		note: "Without a cache. \"Definitions\" are those that all turns read before the first search, \"rest\" is everything else. " +
			"Tasks with one short call: the definitions of two tools, with the names of the servers, cost more than the one of a tool search, and the rest saves less.",
		head: []string{"servers", "task", "code mode", "definitions", "rest", "cheapest other way", "definitions", "rest", "dearer by"},
	}
	for _, s := range r.Sizes {
		for _, d := range r.dearer(s.Servers, encoding) {
			row := []string{number(s.Servers), d.name}
			for _, l := range []*Line{d.code, d.other} {
				entry := (l.Definitions + l.Instructions) * len(l.Turns)
				row = append(row, nameAndTotal(l), number(entry), number(l.Total()-entry))
			}
			t.add(append(row, fmt.Sprintf("%.0f %%", 100*math.Max(0, float64(d.code.Total())/float64(d.other.Total())-1)))...)
		}
	}
	return t
}

func nameAndTotal(l *Line) string {
	if l.Mode == code {
		return number(l.Total())
	}
	return nameOf(l.Mode) + ": " + number(l.Total())
}

// dearerSpan returns the least and the greatest number of such tasks of one size.
func (r sections) dearerSpan(encoding string) string {
	var counts []int
	for _, s := range r.Sizes {
		counts = append(counts, len(r.dearer(s.Servers, encoding)))
	}
	return span(slices.Min(counts), slices.Max(counts))
}
