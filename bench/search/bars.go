package main

import (
	"fmt"
	"io"
)

// bar is a value of a metric that search is to reach on a group.
type bar struct {
	group, metric string
	least         float64
}

// bars are what issue 5 asks for.
func bars() []bar {
	return []bar{
		{"livemcp/step", "ndcg@10", .82}, {"livemcp/step", "recall@5", .88},
		{"livemcp/route", "hit@5", .70},
		{"livemcp/task", "ndcg@10", .48}, {"livemcp/task", "recall@5", .50},
		{"bfcl/pooled", "ndcg@10", .80}, {"bfcl/pooled", "recall@5", .85},
		{"mcpproxygold/golden", "ndcg@10", .78}, {"mcpproxygold/golden", "recall@5", .85},
		{"catalog/paraphrase", "ndcg@10", .50}, {"catalog/oblique", "ndcg@10", .50},
	}
}

// Of queries that nothing fits, leastHonest are to be told so; of good ones, mostRefused at most.
const (
	leastHonest = .70
	mostRefused = .03
)

// barTable prints what the bars are and what is reached: over all queries and in each half.
func barTable(w io.Writer, rows []row, halves []half, engine string) {
	fmt.Fprintf(w, "\t\nbar\t metric\t asked for\t")
	for _, h := range halves {
		fmt.Fprintf(w, " %s\t", h.name)
	}
	fmt.Fprintln(w)
	for _, b := range bars() {
		if len(choose(rows, engine, b.group, halves[0])) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t %s\t at least %.2f\t", b.group, b.metric, b.least)
		for _, h := range halves {
			mark(w, value(means(choose(rows, engine, b.group, h)), b.metric), b.least)
		}
		fmt.Fprintln(w)
	}
	for _, l := range []struct {
		name, metric, asked string
		are                 func(row) bool
		sign, bar           float64
	}{
		{"nothing fits", "said so", "at least", isNone, 1, leastHonest},
		{"good queries", "refused", "at most", isGood, -1, mostRefused},
		{"good, gold in the first 5", "refused", "at most", isAnswered, -1, mostRefused},
	} {
		if len(those(rows, engine, halves[0], l.are)) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t %s\t %s %.2f\t", l.name, l.metric, l.asked, l.bar)
		for _, h := range halves {
			mark(w, l.sign*share(those(rows, engine, h, l.are), weak), l.sign*l.bar)
		}
		fmt.Fprintln(w)
	}
}

// mark prints a value, and whether it is short of what is asked for.
func mark(w io.Writer, got, least float64) {
	short := " "
	if got < least-1e-9 {
		short = "-"
	}
	fmt.Fprintf(w, " %.3f%s\t", max(got, -got), short)
}

func those(rows []row, engine string, h half, are func(row) bool) (chosen []row) {
	for _, r := range rows {
		if r.Engine == engine && h.has(r) && are(r) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

func isNone(r row) bool     { return r.None }
func isGood(r row) bool     { return !r.None }
func isAnswered(r row) bool { return !r.None && r.Scores.Hit5 > 0 }
