package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sallyport/internal/testutil/ireval"
)

// half is a part of the queries: all, those to tune by, those to check with, or of these
// the ones that have neither task nor tool in common with one to tune by.
type half struct {
	name string
	has  func(row) bool
}

func halvesOf(name string) ([]half, error) {
	all := half{"all", func(row) bool { return true }}
	odd := half{"odd", func(r row) bool { return r.Tuned }}
	even := half{"even", func(r row) bool { return !r.Tuned }}
	apart := half{"apart", func(r row) bool { return r.Apart }}
	switch name {
	case "all":
		return []half{all}, nil
	case "odd":
		return []half{odd}, nil
	case "even":
		return []half{even}, nil
	case "apart":
		return []half{apart}, nil
	case "each":
		return []half{all, odd, even, apart}, nil
	}
	return nil, fmt.Errorf("unknown half %q (use all, odd, even, apart or each)", name)
}

// choose returns the rows of one engine, group and half.
func choose(rows []row, engine, group string, h half) (chosen []row) {
	for _, r := range rows {
		if r.Engine == engine && r.Group == group && h.has(r) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

// groups returns the groups of the rows, in their order.
func groups(rows []row) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, r.Group) {
			names = append(names, r.Group)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(setRank(a), setRank(b)), cmp.Compare(a, b))
	})
	return names
}

func setRank(group string) int {
	set, _, _ := strings.Cut(group, "/")
	return slices.Index(setNames(), set)
}

func means(rows []row) ireval.Scores {
	all := make([]ireval.Scores, len(rows))
	for i, r := range rows {
		all[i] = r.Scores
	}
	return ireval.Mean(all)
}

// share returns how many of the rows are so, 0 to 1.
func share(rows []row, so func(row) bool) float64 {
	n := 0
	for _, r := range rows {
		if so(r) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(rows)))
}

func weak(r row) bool { return r.Weak }

// none reports whether nothing fits the queries of these rows.
func none(rows []row) bool { return len(rows) > 0 && rows[0].None }

// report prints the tables: our own scores, honesty, the other engines next to ours,
// and where we are below bleve's default.
func report(out io.Writer, rows []row, halves []half, engines []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	scoreTable(w, rows, halves, engines[0])
	honestyTable(w, rows, halves, engines[0])
	tokenTable(w, rows, halves, engines[0])
	barTable(w, meansOf(rows, engines[:1]), halves)
	if len(engines) > 1 {
		enginesTable(w, rows, engines)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, other := range engines[1:] {
		falls := below(rows, engines[0], other)
		fmt.Fprintf(out, "\n%d scores of a set, or of a half of one, are below those of %s\n", len(falls), other)
		for _, line := range falls {
			fmt.Fprintln(out, "  below:", line)
		}
	}
	return nil
}

func scoreTable(w io.Writer, rows []row, halves []half, engine string) {
	fmt.Fprintf(w, "%s\t half\t n\t %s\t\n", engine, strings.Join(ireval.Metrics(), "\t "))
	for _, group := range groups(rows) {
		for _, h := range halves {
			chosen := choose(rows, engine, group, h)
			if len(chosen) == 0 || none(chosen) {
				continue
			}
			fmt.Fprintf(w, "%s\t %s\t %d\t", group, h.name, len(chosen))
			for _, v := range means(chosen).Values() {
				fmt.Fprintf(w, " %.3f\t", v)
			}
			fmt.Fprintln(w)
		}
	}
}

// honestyTable says how often good queries are refused and how often those are answered that nothing fits.
func honestyTable(w io.Writer, rows []row, halves []half, engine string) {
	fmt.Fprintf(w, "\t\nhonesty\t half\t n\t refused wrongly\t answered wrongly\t\n")
	for _, h := range halves {
		var good []row
		for _, group := range groups(rows) {
			chosen := choose(rows, engine, group, h)
			switch {
			case none(chosen):
				fmt.Fprintf(w, "%s\t %s\t %d\t \t %.1f%%\t\n", group, h.name, len(chosen), 100-100*share(chosen, weak))
			case len(chosen) > 0:
				fmt.Fprintf(w, "%s\t %s\t %d\t %.1f%%\t \t\n", group, h.name, len(chosen), 100*share(chosen, weak))
				good = append(good, chosen...)
			}
		}
		fmt.Fprintf(w, "all good queries\t %s\t %d\t %.1f%%\t \t\n", h.name, len(good), 100*share(good, weak))
	}
}

// tokenTable says what a model reads until it sees the right tool.
func tokenTable(w io.Writer, rows []row, halves []half, engine string) {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.First >= 0 }) {
		return
	}
	fmt.Fprintf(w, "\t\ntokens\t half\t n\t first answer\t its most\t until gold\t in the 1st\t with signature\t in 1st or 2nd\t\n")
	for _, group := range groups(rows) {
		for _, h := range halves {
			if chosen := choose(rows, engine, group, h); len(chosen) > 0 {
				tokenRow(w, group, h, chosen)
			}
		}
	}
}

func tokenRow(w io.Writer, group string, h half, rows []row) {
	first, until, most := 0, 0, 0
	for _, r := range rows {
		first, until, most = first+r.First, until+r.Until, max(most, r.First)
	}
	fmt.Fprintf(w, "%s\t %s\t %d\t %d\t %d\t", group, h.name, len(rows), first/len(rows), most)
	if none(rows) {
		fmt.Fprintf(w, " \t \t \t \t\n")
		return
	}
	fmt.Fprintf(w, " %d\t", until/len(rows))
	for _, so := range []func(row) bool{
		func(r row) bool { return r.Seen && r.Until == r.First },
		func(r row) bool { return r.Signed },
		func(r row) bool { return r.Seen },
	} {
		fmt.Fprintf(w, " %.1f%%\t", 100*share(rows, so))
	}
	fmt.Fprintln(w)
}

// enginesTable puts the engines side by side, by the two metrics that the bars are set in.
func enginesTable(w io.Writer, rows []row, engines []string) {
	fmt.Fprintf(w, "\t\nndcg@10/recall@5 (routes: hit@3/hit@5)\t n\t %s\t\n", strings.Join(engines, "\t "))
	all := half{"all", func(row) bool { return true }}
	for _, group := range groups(rows) {
		if chosen := choose(rows, engines[0], group, all); len(chosen) == 0 || none(chosen) {
			continue
		}
		fmt.Fprintf(w, "%s\t %d\t", group, len(choose(rows, engines[0], group, all)))
		for _, name := range engines {
			m, names := means(choose(rows, name, group, all)), comparedMetrics(group)
			fmt.Fprintf(w, " %.3f/%.3f\t", value(m, names[0]), value(m, names[1]))
		}
		fmt.Fprintln(w)
	}
}

// below returns a line for each group, half and metric in which an engine is worse than another.
func below(rows []row, engine, other string) (lines []string) {
	halves, _ := halvesOf("each")
	for _, group := range groups(rows) {
		for _, h := range halves {
			a, b := choose(rows, engine, group, h), choose(rows, other, group, h)
			if none(a) {
				continue
			}
			ours, theirs := means(a).Values(), means(b).Values()
			for i, metric := range ireval.Metrics() {
				if ours[i] < theirs[i]-1e-9 {
					lines = append(lines, fmt.Sprintf("%s, %s, %s: %.3f against %.3f (n %d)", group, h.name, metric, ours[i], theirs[i], len(a)))
				}
			}
		}
	}
	return lines
}

// printWorst prints the queries that our engine answered worst: those with gold
// tools by nDCG, and the wrong refusals and wrong answers.
func printWorst(out io.Writer, rows []row, n int, halves []half) {
	var chosen []row
	for _, r := range rows {
		if r.Engine == rows[0].Engine && halves[0].has(r) && (r.None != r.Weak || !r.None && r.Scores.NDCG10 < 1) {
			chosen = append(chosen, r)
		}
	}
	slices.SortStableFunc(chosen, func(a, b row) int { return cmp.Compare(a.Scores.NDCG10, b.Scores.NDCG10) })
	fmt.Fprintf(out, "\nthe worst %d of %d that are not perfect\n", min(n, len(chosen)), len(chosen))
	for _, r := range chosen[:min(n, len(chosen))] {
		fmt.Fprintf(out, "%.2f %s %s%s: %q\n", r.Scores.NDCG10, r.Group, r.ID, map[bool]string{true: " (said nothing fits)"}[r.Weak], r.Query)
		if r.None {
			fmt.Fprintln(out, "  gold  nothing")
		}
		for _, id := range r.Gold {
			place := "-"
			if at := slices.Index(r.Top, id); at >= 0 {
				place = fmt.Sprint(at + 1)
			}
			fmt.Fprintf(out, "  gold  %s at %s\n", id, place)
		}
		fmt.Fprintf(out, "  first %s\n", strings.Join(r.Top[:min(5, len(r.Top))], ", "))
	}
}
