package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/bench/doc"
	"sallyport/internal/testutil/ireval"
)

// validationHalf is the half that no weight was fitted to: it is for validation.
const validationHalf = "even"

// quote is a figure of someone else's run, which is shown next to ours as such.
type quote struct {
	Engine string  `json:"engine"`
	Group  string  `json:"group"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Source string  `json:"source"`
}

//go:embed quoted.jsonl
var quoted []byte

// quotes are the figures in quoted.jsonl.
func quotes() (all []quote, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(quoted)); lines.Scan(); {
		var q quote
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("read quoted.jsonl: %w", err)
		}
		all = append(all, q)
	}
	return all, nil
}

// pageName is the name of the sections and of the page that are made from the results.
const pageName = "search"

// texts returns what is written into the documents.
func texts(o origin, all []mean) (doc.Texts, error) {
	quoted, err := quotes()
	if err != nil {
		return doc.Texts{}, err
	}
	return doc.Texts{Losses: losses(all), Summary: summary(all), Tables: tables(o, all, quoted)}, nil
}

// tables returns what is found in the validation half, with the others next to it; the
// targets; other engines; and where another engine is better.
func tables(o origin, all []mean, quoted []quote) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured at commit %s. [search.txt](../../../bench/results/search.txt) has every half, metric and engine, and tokens.\n\n", o.Commit)
	foundTable(&b, ofEngine(all, ours))
	pageBars(&b, all)
	pageReliability(&b, all)
	pageEngines(&b, all, quoted)
	pageBelow(&b, all)
	return b.String()
}

// losses returns the missed targets, and how often another engine is better.
func losses(all []mean) string {
	var b strings.Builder
	met, missed := 0, 0
	for _, bar := range bars() {
		switch even, whole, n := bar.halves(all); {
		case n == 0:
		case bar.met(even) && bar.met(whole):
			met++
		default:
			missed++
			fmt.Fprintf(&b, "| %s | %s | %s | %.3f | %.3f |\n", bar.queries, bar.metric, bar.target(), even, whole)
		}
	}
	if even, whole := worse(all, plain, validationHalf), worse(all, plain, "all"); even+whole == 0 {
		met++
	} else {
		missed++
		fmt.Fprintf(&b, "| every set | metrics below bleve's default | none | %d | %d |\n", even, whole)
	}
	text := fmt.Sprintf("- %d of %d targets are met.\n- In %d figures (a metric of a set and half) another engine is better.\n", met, met+missed, len(worseThan(all)))
	if missed == 0 {
		return text
	}
	return text + "\n| missed: queries | metric | target | even queries | all |\n| --- | --- | --- | ---: | ---: |\n" + b.String()
}

// summary returns the main metrics of each set, with the best other engine.
func summary(all []mean) string {
	var b strings.Builder
	b.WriteString("| even queries | n | recall@5 | nDCG@10 | best other engine, nDCG@10 |\n| --- | ---: | ---: | ---: | --- |\n")
	for _, m := range ofEngine(all, ours) {
		if m.Half == validationHalf && !m.None {
			cells(&b, m.Group, fmt.Sprint(m.N), three(m.Recall5), three(m.NDCG10), best(all, m.Group, validationHalf, "ndcg@10"))
		}
	}
	return b.String()
}

// halves returns what is reached in the validation half and in all queries, and the number of queries.
func (b bar) halves(all []mean) (even, whole float64, n int) {
	mine := ofEngine(all, ours)
	even, n = b.reached(mine, validationHalf)
	whole, _ = b.reached(mine, "all")
	return even, whole, n
}

// ofEngine returns the means of one engine.
func ofEngine(all []mean, engine string) (its []mean) {
	for _, m := range all {
		if m.Engine == engine {
			its = append(its, m)
		}
	}
	return its
}

// find returns the mean of a group and a half, of one engine's.
func find(its []mean, group, half string) (mean, bool) {
	at := slices.IndexFunc(its, func(m mean) bool { return m.Group == group && m.Half == half })
	if at < 0 {
		return mean{}, false
	}
	return its[at], true
}

// columns writes the head of a Markdown table.
func columns(b *strings.Builder, names ...string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)))
}

func cells(b *strings.Builder, values ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(values, " | "))
}

// pageMetrics are the metrics that the page has of the half that checks.
func pageMetrics() []string {
	return []string{"recall@1", "recall@5", "recall@10", "ndcg@10", "mrr", "hit@5"}
}

func foundTable(b *strings.Builder, mine []mean) {
	fmt.Fprintf(b, "### Metrics\nOf the %s queries of each set; weights were fitted to the odd ones.\n\n", validationHalf)
	columns(b, slices.Concat([]string{"queries", "n"}, pageMetrics(), []string{"ndcg@10, odd: fitted", "ndcg@10, all", "ndcg@10, apart", "n apart"})...)
	for _, m := range mine {
		if m.Half != validationHalf || m.None {
			continue
		}
		row := []string{m.Group, fmt.Sprint(m.N)}
		for _, metric := range pageMetrics() {
			row = append(row, three(value(m.Scores, metric)))
		}
		cells(b, append(row, otherHalves(mine, m.Group)...)...)
	}
}

// otherHalves returns nDCG@10 of the other halves, and how many queries are apart.
func otherHalves(mine []mean, group string) (cells []string) {
	for _, half := range []string{"odd", "all", "apart"} {
		cell := ""
		if m, ok := find(mine, group, half); ok {
			cell = three(m.NDCG10)
		}
		cells = append(cells, cell)
	}
	apart, _ := find(mine, group, "apart")
	return append(cells, fmt.Sprint(apart.N))
}

func three(v float64) string { return fmt.Sprintf("%.3f", v) }

// pageBars says which bars are met: by the half that checks and by all queries.
func pageBars(b *strings.Builder, all []mean) {
	mine := ofEngine(all, ours)
	b.WriteString("\n### Targets\nA target is met if the even queries and all queries reach it.\n\n")
	columns(b, "queries", "n even", "metric", "target", "even", "odd: fitted", "all", "")
	for _, bar := range bars() {
		even, whole, n := bar.halves(all)
		if n == 0 {
			continue
		}
		row := []string{bar.queries, fmt.Sprint(n), bar.metric, bar.target()}
		for _, half := range []string{validationHalf, "odd", "all"} {
			row = append(row, bar.cell(mine, half, " short", ""))
		}
		cells(b, append(row, verdict(bar.met(even) && bar.met(whole)))...)
	}
	even, odd, whole := worse(all, plain, validationHalf), worse(all, plain, "odd"), worse(all, plain, "all")
	cells(b, "every set", "", "metrics below bleve's default", "none", fmt.Sprint(even), fmt.Sprint(odd), fmt.Sprint(whole), verdict(even+whole == 0))
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**MISSED**"
}

// worse counts the metrics of all groups in which another engine is ahead of us in a half.
func worse(all []mean, engine, half string) (n int) {
	theirs := ofEngine(all, engine)
	for _, m := range ofEngine(all, ours) {
		for _, metric := range ireval.Metrics() {
			if m.Half == half && !m.None && betterEngines(theirs, m, metric) != "" {
				n++
			}
		}
	}
	return n
}

// pageEngines has the best of the others for each metric, by name, and what is quoted.
func pageEngines(b *strings.Builder, all []mean, quoted []quote) {
	b.WriteString("\n### Other engines\nThe best of those that ran on the same queries, by name, and quoted figures.\n\n")
	columns(b, "queries", "metric", "ours, even", "best other, even", "ours, all", "best other, all", "quoted, all")
	for _, m := range ofEngine(all, ours) {
		if m.Half != validationHalf || m.None {
			continue
		}
		for _, metric := range comparedMetrics(m.Group) {
			row := []string{m.Group, metric}
			for _, half := range []string{validationHalf, "all"} {
				mine, _ := find(ofEngine(all, ours), m.Group, half)
				row = append(row, three(value(mine.Scores, metric)), best(all, m.Group, half, metric))
			}
			cells(b, append(row, quotedText(quoted, m.Group, metric))...)
		}
	}
	var sources []string
	for _, q := range quoted {
		if !slices.Contains(sources, q.Source) {
			sources = append(sources, q.Source)
			fmt.Fprintf(b, "\n%s\n", q.Source)
		}
	}
}

// best is the greatest value that another engine has, and which one.
func best(all []mean, group, half, metric string) string {
	most, name := -1.0, ""
	for _, m := range all {
		if v := value(m.Scores, metric); m.Engine != ours && m.Group == group && m.Half == half && v > most {
			most, name = v, m.Engine
		}
	}
	if name == "" {
		return ""
	}
	return three(most) + " " + name
}

// quotedText returns the quoted value for a group and a metric.
func quotedText(quoted []quote, group, metric string) string {
	var all []string
	for _, q := range quoted {
		if q.Group == group && q.Metric == metric {
			all = append(all, three(q.Value)+" "+q.Engine)
		}
	}
	return strings.Join(all, ", ")
}

// pageBelow names every metric of a group and a half in which another engine is better.
func pageBelow(b *strings.Builder, all []mean) {
	b.WriteString("\n### Worse than another engine\nIn any metric and any half.\n\n")
	lines := worseThan(all)
	if len(lines) == 0 {
		lines = []string{"- none"}
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
}

// worseThan returns a line of a list for each figure in which another engine is better.
func worseThan(all []mean) (lines []string) {
	for _, m := range ofEngine(all, ours) {
		for _, metric := range ireval.Metrics() {
			if better := betterEngines(all, m, metric); better != "" && !m.None {
				lines = append(lines, fmt.Sprintf("- %s, %s (%d queries), %s: %s, against %s", m.Group, m.Half, m.N, metric, three(value(m.Scores, metric)), better))
			}
		}
	}
	return lines
}

// betterEngines returns the engines that are better than m in a metric.
func betterEngines(all []mean, m mean, metric string) string {
	var better []string
	for _, other := range all {
		if v := value(other.Scores, metric); other.Group == m.Group && other.Half == m.Half && v > value(m.Scores, metric)+1e-6 {
			better = append(better, three(v)+" "+other.Engine)
		}
	}
	return strings.Join(better, ", ")
}
