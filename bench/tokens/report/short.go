package report

import (
	"fmt"
	"slices"
	"strings"
)

// short is the summary: what code mode saves.
func (r *Results) short(encoding string) *table {
	t := &table{
		note: strings.Join(r.findings(encoding), "\n"),
		head: []string{"saved by code mode, all tasks / median task", "tools", "over direct, no cache", "like prices", "over tool search, no cache", "like prices"},
	}
	for _, s := range r.Sizes {
		row := []string{count(s.Servers, "server"), number(sections{r}.mean(s.Servers, direct, encoding, func(l *Line) int { return l.Tools }))}
		for _, other := range []string{direct, search} {
			for _, w := range []weighing{plain(), priceWeighing()} {
				row = append(row, r.saves(other, s.Servers, encoding, w))
			}
		}
		t.add(row...)
	}
	return t
}

func (r *Results) saves(other string, servers int, encoding string, w weighing) string {
	p := r.pairs(other, servers, encoding, "", w)
	if p.n == 0 {
		return "fits no window"
	}
	return savedPercent(p.other, p.code) + " / " + savedPercent(1, 1-middle(p.parts))
}

// lossFindings returns where code mode loses, each sentence a line of a list.
func (r *Results) lossFindings(encoding string) []string {
	return []string{
		"- Code mode costs more than direct calls " + r.lossSummary(direct, encoding) + ".",
		"- Code mode costs more than a tool search " + r.lossSummary(search, encoding) + ".",
		"- At each size, " + sections{r}.dearerSpan(encoding) + " tasks cost over 10 % more than the cheapest other way.",
		"- The ranges cover five ways to weigh tokens; the table \"Where code mode loses\" has each way and each task.",
	}
}

// findings returns sentences, each a line of a list.
func (r *Results) findings(encoding string) (lines []string) {
	if slices.Contains(r.sizes(), 5) {
		lines = append(lines, "- "+r.evens(5, encoding, plain()), "- "+r.evens(5, encoding, priceWeighing()))
	}
	for _, s := range r.Sizes {
		if names, of, _ := r.tooLarge(direct, s.Servers, encoding); len(names) > 0 {
			lines = append(lines, fmt.Sprintf("- With %s, direct calls need a context of more than %s tokens in %d of %d tasks. These tasks are in no saving over direct calls.", count(s.Servers, "server"), number(Window), len(names), of))
		}
	}
	return append(lines, "- \"Like prices\": a cached token counts 0.1, definitions are cached before the first turn, storing counts 1.25, output 5. Without a cache every token counts 1.")
}

// lossSummary returns in how many tasks code mode costs more than another mode: from the weighing with the fewest to that
// with the most.
func (r *Results) lossSummary(other, encoding string) string {
	var parts []string
	for _, s := range r.Sizes {
		least, most, of := 0, 0, 0
		for i, w := range weighings() {
			names, n := r.loses(other, s.Servers, encoding, w)
			if of = n; i == 0 {
				least = len(names)
			}
			least, most = min(least, len(names)), max(most, len(names))
		}
		if of > 0 {
			parts = append(parts, fmt.Sprintf("in %s of %d tasks with %s", span(least, most), of, count(s.Servers, "server")))
		}
	}
	return joinWords(parts)
}

// evens says at how many definitions direct calls cost as much as code mode.
func (r *Results) evens(servers int, encoding string, w weighing) string {
	var at []int
	always, never, of := 0, 0, 0
	for _, task := range r.tasks(servers) {
		a, b := r.of(task, direct, servers, encoding), r.of(task, code, servers, encoding)
		if a == nil || !a.Correct {
			continue
		}
		of++
		switch n, ok := evenAt(a, b, w); {
		case !ok:
			never++
		case n == 0:
			always++
		default:
			at = append(at, n)
		}
	}
	text := fmt.Sprintf("Break-even with direct calls, %s: in %d of %d tasks code mode is cheaper even without definitions", weighingName(w), always, of)
	if len(at) > 0 {
		each, low, high := max(1, sections{r}.each(servers, encoding)), slices.Min(at), slices.Max(at)
		text += fmt.Sprintf("; in %d from %s tokens of definitions (%s tools)", len(at), span(low, high), span(int(float64(low)/each+.5), int(float64(high)/each+.5)))
	}
	if never > 0 {
		text += fmt.Sprintf("; in %d it is never cheaper", never)
	}
	return text + "."
}

func weighingName(w weighing) string {
	if w == plain() {
		return "without a cache"
	}
	return "like prices"
}

// span is a range of numbers, or one.
func span(least, most int) string {
	if least == most {
		return number(most)
	}
	return number(least) + " to " + number(most)
}
