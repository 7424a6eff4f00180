package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sallyport/internal/testutil/ireval"
)

// comparison counts the queries that got better and worse between two runs.
type comparison struct{ wins, losses, ties int }

func (d *comparison) add(before, after float64) {
	switch {
	case after > before+1e-9:
		d.wins++
	case after < before-1e-9:
		d.losses++
	default:
		d.ties++
	}
}

// compare prints, for each group and half of our engine, how many queries a run
// answers better and worse than an earlier one, and how likely chance alone does
// as much: means of 30 to 45 queries have a standard error of about .08.
func compare(out io.Writer, before, after []row, halves []half) error {
	if len(after) == 0 {
		return nil
	}
	old := map[string]row{}
	for _, r := range before {
		old[r.key()] = r
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t\nagainst the earlier run\t half\t n\t metric\t before\t after\t wins\t losses\t ties\t p\t\n")
	for _, group := range groups(after) {
		for _, h := range halves {
			chosen := choose(after, after[0].Engine, group, h)
			for _, metric := range comparedMetrics(group) {
				compareOne(w, group, h, metric, old, chosen)
			}
		}
	}
	return w.Flush()
}

// comparedMetrics are the metrics that runs are compared by.
func comparedMetrics(group string) []string {
	if strings.HasSuffix(group, "/route") {
		return []string{"hit@3", "hit@5"}
	}
	return []string{"ndcg@10", "recall@5"}
}

func compareOne(w io.Writer, group string, h half, metric string, old map[string]row, rows []row) {
	var d comparison
	a, b := 0.0, 0.0
	for _, r := range rows {
		was, ok := old[r.key()]
		if !ok || was.Query != r.Query || r.None {
			continue
		}
		x, y := value(was.Scores, metric), value(r.Scores, metric)
		d.add(x, y)
		a, b = a+x, b+y
	}
	n := d.wins + d.losses + d.ties
	if n == 0 {
		return
	}
	fmt.Fprintf(w, "%s\t %s\t %d\t %s\t %.3f\t %.3f\t %d\t %d\t %d\t %.3f\t\n", group, h.name, n, metric,
		a/float64(n), b/float64(n), d.wins, d.losses, d.ties, ireval.SignTest(d.wins, d.losses))
}

func value(s ireval.Scores, metric string) float64 {
	for i, name := range ireval.Metrics() {
		if name == metric {
			return s.Values()[i]
		}
	}
	panic("no metric " + metric)
}
