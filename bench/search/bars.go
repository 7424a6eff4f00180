package main

import (
	"fmt"
	"io"
)

// bar is a target for search: for a metric on a group, or for refusals.
type bar struct {
	queries, metric string
	bound           float64
	most            bool // it is to be bound at most, else at least
	// reached is the value on one half, and of how many queries.
	reached func(all []mean, half string) (value float64, n int)
}

// Search reports that no tool fits for at least leastHonest of the queries that none fits, leastLong of the long ones among
// them and leastFlagged of the answers that are wrong, and for at most mostRefused of the others.
const (
	leastHonest  = .65
	leastLong    = .50
	leastFlagged = .40
	mostRefused  = .03
)

// bars are what search is held to.
func bars() []bar {
	good, none := func(m mean) bool { return !m.None }, func(m mean) bool { return m.None }
	return []bar{
		scoreBar("livemcp/step", "ndcg@10", .82), scoreBar("livemcp/step", "recall@5", .88),
		scoreBar("livemcp/route", "hit@5", .72),
		scoreBar("livemcp/task", "ndcg@10", .50), scoreBar("livemcp/task", "recall@5", .50),
		scoreBar("bfcl/pooled", "ndcg@10", .84), scoreBar("bfcl/pooled", "recall@5", .85),
		scoreBar("mcpproxygold/golden", "ndcg@10", .86), scoreBar("mcpproxygold/golden", "recall@5", .85),
		scoreBar("metatool/pooled", "ndcg@10", .66),
		scoreBar("stabletoolbench/G1", "ndcg@10", .70), scoreBar("stabletoolbench/G2", "ndcg@10", .70), scoreBar("stabletoolbench/G3", "ndcg@10", .60),
		scoreBar("catalog/keyword", "ndcg@10", .96), scoreBar("catalog/plain", "ndcg@10", .96),
		scoreBar("catalog/paraphrase", "ndcg@10", .58), scoreBar("catalog/oblique", "ndcg@10", .36),
		{queries: "no tool fits", metric: "reported", bound: leastHonest, reached: pooledShare(none, refusedShare)},
		{queries: "no tool fits, long", metric: "reported", bound: leastLong, reached: pooledShare(none, longShare)},
		{queries: "wrong answers", metric: "reported", bound: leastFlagged, reached: pooledShare(good, wrongShare)},
		{queries: "good queries, gold in the first 5", metric: "reported", bound: mostRefused, most: true, reached: pooledShare(good, deniedShare)},
	}
}

func scoreBar(group, metric string, least float64) bar {
	return bar{queries: group, metric: metric, bound: least, reached: func(all []mean, half string) (float64, int) {
		m, _ := find(all, group, half)
		return value(m.Scores, metric), m.N
	}}
}

// pooledShare adds up a share over the groups that are so.
func pooledShare(so func(mean) bool, of func(mean) (n int, share float64)) func([]mean, string) (float64, int) {
	return func(all []mean, half string) (float64, int) {
		sum, count := 0.0, 0
		for _, m := range all {
			if n, share := of(m); m.Half == half && so(m) {
				sum, count = sum+share*float64(n), count+n
			}
		}
		return sum / float64(max(1, count)), count
	}
}

func refusedShare(m mean) (int, float64) { return m.N, m.Refused }
func wrongShare(m mean) (int, float64)   { return m.Wrong, m.Flagged }
func longShare(m mean) (int, float64)    { return m.Long, m.LongRefused }
func deniedShare(m mean) (int, float64)  { return m.Answered, m.Denied }

func (b bar) met(got float64) bool {
	if b.most {
		return got <= b.bound+1e-9
	}
	return got >= b.bound-1e-9
}

// target returns the target as text.
func (b bar) target() string {
	way := "at least"
	if b.most {
		way = "at most"
	}
	return fmt.Sprintf("%s %.2f", way, b.bound)
}

// barTable prints what the bars are and what one engine reaches in each half; a "-" marks what is short of it.
func barTable(w io.Writer, all []mean, halves []half) {
	fmt.Fprintf(w, "\t\nbar\t metric\t asked for\t")
	for _, h := range halves {
		fmt.Fprintf(w, " %s\t", h.name)
	}
	fmt.Fprintln(w)
	for _, b := range bars() {
		if _, n := b.reached(all, halves[0].name); n == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t %s\t %s\t", b.queries, b.metric, b.target())
		for _, h := range halves {
			fmt.Fprintf(w, " %s\t", b.cell(all, h.name, "-", " "))
		}
		fmt.Fprintln(w)
	}
}

// cell is what is reached in a half, with a mark for whether it is short of the bar; nothing where no one measured it.
func (b bar) cell(all []mean, half, short, enough string) string {
	got, n := b.reached(all, half)
	if n == 0 {
		return ""
	}
	if !b.met(got) {
		enough = short
	}
	return fmt.Sprintf("%.3f%s", got, enough)
}
