package report

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/bench/suite"
)

// paged are the sizes that the page has a table of tasks for; the text has one for each.
func (r *Results) paged() (sizes []int) {
	for _, s := range r.Sizes {
		if s.Servers == 5 || s.Servers == 25 {
			sizes = append(sizes, s.Servers)
		}
	}
	return sizes
}

// legendOf explains the tables of tasks.
func legendOf() *table {
	return &table{
		title: "Each task",
		note: fmt.Sprintf("All that is read and written, in tokens; turns in the order direct, tool search, code mode; cached: what a turn has read before counts a tenth. **Bold**: code mode costs more than "+
			"another mode. In parentheses: a context of more than %s tokens, which nothing is saved over. \"wrong\": no right answer.", number(Window)),
	}
}

// shown tells what a client shows of its servers at each size.
func (r *Results) shown(encoding string) *table {
	t := &table{
		title: "What a model reads before the first word",
		note:  "Tokens of definitions and of servers' instructions, in each turn. With one server, those of the task's; here the mean over the tasks.",
		head:  []string{"servers", "tools", "direct", "tool search", "code mode"},
	}
	for _, s := range r.Sizes {
		row := []string{number(s.Servers), number(r.mean(s.Servers, direct, encoding, func(l *Line) int { return l.Tools }))}
		for _, mode := range suite.Modes() {
			row = append(row, number(r.mean(s.Servers, string(mode), encoding, func(l *Line) int { return l.Definitions + l.Instructions })))
		}
		t.add(row...)
	}
	return t
}

func (r *Results) mean(servers int, mode, encoding string, of func(*Line) int) float64 {
	sum, n := 0, 0
	for _, task := range r.tasks(servers) {
		if l := r.of(task, mode, servers, encoding); l != nil {
			sum, n = sum+of(l), n+1
		}
	}
	return float64(sum) / float64(max(1, n))
}

// perTask has a line for each task.
func (r *Results) perTask(servers int, encoding string) *table {
	t := &table{
		title: fmt.Sprintf("Each task with %s", count(servers, "server")),
		head:  []string{"task", "kind", "turns", "direct", "tool search", "code mode", "direct, cached", "tool search, cached", "code mode, cached", "cheapest"},
	}
	for _, task := range r.tasks(servers) {
		row := []string{task, r.kind(task), r.turns(task, servers, encoding)}
		var best []string
		for _, w := range []weighing{plain(), cached()} {
			cells, winner := r.cells(task, servers, encoding, w)
			row, best = append(row, cells...), append(best, winner)
		}
		t.add(append(row, strings.Join(slices.Compact(best), "; cached: "))...)
	}
	return t
}

func (r *Results) turns(task string, servers int, encoding string) string {
	var all []string
	for _, mode := range suite.Modes() {
		if l := r.of(task, string(mode), servers, encoding); l != nil {
			all = append(all, fmt.Sprint(len(l.Turns)))
		}
	}
	return strings.Join(all, " / ")
}

// cells are what a task costs in each mode, and the mode that costs the least.
func (r *Results) cells(task string, servers int, encoding string, w weighing) (cells []string, winner string) {
	least := 0.
	for _, mode := range suite.Modes() {
		l := r.of(task, string(mode), servers, encoding)
		cells = append(cells, cell(l, w))
		if l.Valid() && (winner == "" || l.Weighed(w.rates) < least) {
			winner, least = nameOf(string(mode)), l.Weighed(w.rates)
		}
	}
	if winner != nameOf(code) && winner != "" {
		cells[2] = "**" + cells[2] + "**"
	}
	return cells, winner
}

func cell(l *Line, w weighing) string {
	switch {
	case l == nil:
		return ""
	case !l.Correct:
		return "wrong"
	case !l.Valid():
		return "(" + number(l.Weighed(w.rates)) + ")"
	}
	return number(l.Weighed(w.rates))
}

func nameOf(mode string) string {
	switch mode {
	case search:
		return "tool search"
	case code:
		return "code mode"
	}
	return mode
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return number(n) + " " + what + "s"
}

// sums adds all tasks up, in all ways of weighing.
func (r *Results) sums(encoding string) *table {
	t := &table{
		title: "All tasks together",
		note: "Sums over the tasks that both modes have answered right in a context that fits. Each way of counting is the one above with one thing more: what a turn has read before, from a cache at a tenth; " +
			"definitions and instructions there from the first turn on, of a conversation before; a written token at five that are read; what goes into the cache at 1.25. " +
			"The large tasks are most of a sum; \"by task\" is the median of what is saved in each.",
		head: []string{"servers", "counted", "tasks", "direct", "code mode", "saved", "by task", "tasks", "tool search", "code mode", "saved", "by task"},
	}
	for _, s := range r.Sizes {
		for i, w := range weighings() {
			name := ""
			if i == 0 {
				name = number(s.Servers)
			}
			t.add(append([]string{name, w.name}, append(r.compared(direct, s.Servers, encoding, "", w), r.compared(search, s.Servers, encoding, "", w)...)...)...)
		}
	}
	return t
}

func (r *Results) compared(other string, servers int, encoding, kind string, w weighing) []string {
	p := r.pairs(other, servers, encoding, kind, w)
	if p.n == 0 {
		return []string{"none", "", "", "", ""}
	}
	return []string{fmt.Sprint(p.n), number(p.other), number(p.code), saved(p.other, p.code), saved(1, middle(p.parts))}
}

// byKind has the sums of the tasks of each kind.
func (r *Results) byKind(encoding string, sizes []int) *table {
	t := &table{
		title: "By kind of task",
		note:  "The same sums without a cache, and what is saved of them with cached reads at a tenth.",
		head:  []string{"kind", "servers", "tasks", "direct", "code mode", "saved", "by task", "cached", "tasks", "tool search", "code mode", "saved", "by task", "cached"},
	}
	for _, kind := range r.kinds() {
		for _, servers := range sizes {
			row := []string{kind, number(servers)}
			for _, other := range []string{direct, search} {
				with := r.compared(other, servers, encoding, kind, cached())
				row = append(append(row, r.compared(other, servers, encoding, kind, plain())...), with[3])
			}
			t.add(row...)
		}
	}
	return t
}

// breakEven tells from how many tokens of definitions on code mode is cheaper.
func (r *Results) breakEven(servers int, encoding string) *table {
	size := r.size(servers)
	each := float64(size.Definitions[encoding]) / float64(max(1, size.Tools))
	t := &table{
		title: "Break-even",
		note: fmt.Sprintf("So many tokens of definitions make direct calling as expensive as code mode is with %s, and so many tools are that at the mean of these servers' tools, %s tokens each: without a cache, "+
			"with cached reads at a tenth, and if definitions are cached before. \"always\": code mode is cheaper even if definitions cost nothing. "+
			"The last columns are what code mode saves over a tool search, without a cache.", count(servers, "server"), number(each)),
		head: []string{"task", "tokens", "tools", "cached", "tools", "cached before", "tools"},
	}
	for _, s := range r.Sizes {
		if s.Servers > 1 {
			t.head = append(t.head, fmt.Sprintf("over search, %d", s.Servers))
		}
	}
	for _, task := range r.tasks(servers) {
		row := []string{task}
		for _, w := range []weighing{plain(), cached(), warm()} {
			row = append(row, r.even(task, servers, encoding, each, w)...)
		}
		for _, s := range r.Sizes {
			if s.Servers > 1 {
				row = append(row, r.overSearch(task, s.Servers, encoding))
			}
		}
		t.add(row...)
	}
	return t
}

func (r *Results) even(task string, servers int, encoding string, each float64, w weighing) []string {
	a, b := r.of(task, direct, servers, encoding), r.of(task, code, servers, encoding)
	switch {
	case !b.Valid():
		return []string{"never", "never"}
	case a == nil || !a.Correct:
		return []string{"", ""}
	}
	n := evenAt(a, b, w)
	if n <= 0 || each == 0 {
		return []string{"always", "always"}
	}
	return []string{number(n), number(n / each)}
}

func (r *Results) overSearch(task string, servers int, encoding string) string {
	a, b := r.of(task, search, servers, encoding), r.of(task, code, servers, encoding)
	if !a.Valid() || !b.Valid() {
		return ""
	}
	return saved(a.Weighed(plain().rates), b.Weighed(plain().rates))
}
