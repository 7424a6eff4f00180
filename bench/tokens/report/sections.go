package report

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
)

// sections writes the sections of the report.
type sections struct{ *Results }

// pageSizes returns the sizes that have a table of tasks on the page; the text has one for each.
func (r sections) pageSizes() (sizes []int) {
	for _, s := range r.Sizes {
		if s.Servers == 1 || s.Servers == 5 || s.Servers == 25 {
			sizes = append(sizes, s.Servers)
		}
	}
	return sizes
}

// legendOf explains the tables of tasks.
func legendOf() *table {
	return &table{
		title: "Each task",
		note: fmt.Sprintf("All that is read and written, in tokens; turns in the order direct, tool search, code mode; cached: what a turn has read before counts a tenth, if it is %s tokens or more. "+
			"**Bold**: code mode costs more than another mode. In parentheses: a context of more than %s tokens, which nothing is saved over. \"wrong\": no right answer.", number(tokencount.CacheMinimum), number(Window)),
	}
}

// definitionsTable is the table of what a client shows of its servers at each size.
func (r sections) definitionsTable(encoding string) *table {
	t := &table{
		title: "What a model reads before the first word",
		note:  "Tokens of definitions, in each turn, and in code mode of our instructions. With one server, those of the task's; here the mean over the tasks." + r.uncountedInstructions(encoding),
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

// uncountedInstructions describes the instructions that servers ask clients to show, which are in no figure.
func (r sections) uncountedInstructions(encoding string) string {
	for _, s := range r.Sizes {
		if n := s.Instructions[encoding]; n > 0 {
			return fmt.Sprintf(" What servers ask clients to show beside their tools is not counted in direct and tool search: it is %s tokens with %s.", number(n), count(s.Servers, "server"))
		}
	}
	return ""
}

// servers are those that are connected to, in the order in which they are added.
func (r sections) servers(encoding string) *table {
	t := &table{
		title: "The servers",
		note: "In the order in which they are added, and from how many servers on each is there: those that run, then those that are only shown, which cost the least first. " +
			"A package that is there twice, with other settings, comes the second time at the end.",
		head: []string{"server", "npm package", "version", "tools", "tokens", "from"},
	}
	for _, s := range r.Servers {
		name := s.Name
		if s.Shown {
			name += ", shown"
		}
		t.add(name, s.Package, s.Version, number(s.Tools), number(s.Tokens[encoding]), r.from(s.Name))
	}
	return t
}

// from is the smallest size that has a server.
func (r sections) from(name string) string {
	for _, s := range r.Sizes {
		if slices.Contains(s.Names, name) {
			return number(s.Servers)
		}
	}
	return ""
}

func (r sections) mean(servers int, mode, encoding string, of func(*Line) int) float64 {
	sum, n := 0, 0
	for _, task := range r.tasks(servers) {
		if l := r.of(task, mode, servers, encoding); l != nil {
			sum, n = sum+of(l), n+1
		}
	}
	return float64(sum) / float64(max(1, n))
}

// perTask has a line for each task.
func (r sections) perTask(servers int, encoding string) *table {
	t := &table{
		title: fmt.Sprintf("Each task with %s", count(servers, "server")),
		head:  []string{"task", "kind", "turns", "direct", "tool search", "code mode", "direct, cached", "tool search, cached", "code mode, cached", "cheapest"},
	}
	for _, task := range r.tasks(servers) {
		row := []string{task, r.kind(task), r.turns(task, servers, encoding)}
		var best []string
		for _, w := range []weighing{plain(), cacheWeighing()} {
			cells, winner := r.cells(task, servers, encoding, w)
			row, best = append(row, cells...), append(best, winner)
		}
		t.add(append(row, strings.Join(slices.Compact(best), "; cached: "))...)
	}
	return t
}

func (r sections) turns(task string, servers int, encoding string) string {
	var all []string
	for _, mode := range suite.Modes() {
		if l := r.of(task, string(mode), servers, encoding); l != nil {
			all = append(all, fmt.Sprint(len(l.Turns)))
		}
	}
	return strings.Join(all, " / ")
}

// cells are what a task costs in each mode, and the mode that costs the least.
func (r sections) cells(task string, servers int, encoding string, w weighing) (cells []string, winner string) {
	for _, mode := range suite.Modes() {
		cells = append(cells, cell(r.of(task, string(mode), servers, encoding), w))
	}
	winner = r.cheapest(task, servers, encoding, w)
	if winner != code && winner != "" {
		cells[2] = "**" + cells[2] + "**"
	}
	return cells, nameOf(winner)
}

// cheapest is the mode that costs the least of those that are valid, "" if none is.
func (r sections) cheapest(task string, servers int, encoding string, w weighing) (winner string) {
	least := 0.
	for _, mode := range suite.Modes() {
		l := r.of(task, string(mode), servers, encoding)
		if l.Valid() && (winner == "" || l.WeightedCost(w.rates) < least) {
			winner, least = string(mode), l.WeightedCost(w.rates)
		}
	}
	return winner
}

func cell(l *Line, w weighing) string {
	switch {
	case l == nil:
		return ""
	case !l.Correct:
		return "wrong"
	case !l.Valid():
		return "(" + number(l.WeightedCost(w.rates)) + ")"
	}
	return number(l.WeightedCost(w.rates))
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
func (r sections) sums(encoding string) *table {
	t := &table{
		title: "All tasks together",
		note: fmt.Sprintf("Sums over the tasks that direct calls, or the tool search, answer right in a context that fits; where code mode does not, it is charged what the other mode takes to do "+
			"the task again. Each way of counting is the one above with one thing more: what a turn has read before, from a cache at a tenth (endpoints cache nothing shorter than %s tokens); "+
			"definitions and instructions there from the first turn on, of a conversation before; a written token at five that are read; what goes into the cache at 1.25. "+
			"The large tasks are most of a sum; \"by task\" is the median of what is saved in each.", number(tokencount.CacheMinimum)),
		head: []string{"servers", "counted", "tasks", "direct", "code mode", "saved", "by task", "tasks", "tool search", "code mode", "saved", "by task"},
	}
	for _, s := range r.Sizes {
		for i, w := range weighings() {
			name := ""
			if i == 0 {
				name = number(s.Servers)
			}
			t.add(append([]string{name, w.name}, append(r.compareCells(direct, s.Servers, encoding, "", w), r.compareCells(search, s.Servers, encoding, "", w)...)...)...)
		}
	}
	return t
}

func (r sections) compareCells(other string, servers int, encoding, kind string, w weighing) []string {
	p := r.pairs(other, servers, encoding, kind, w)
	if p.n == 0 {
		return []string{"none", "", "", "", ""}
	}
	return []string{fmt.Sprint(p.n), number(p.other), number(p.code), savedPercent(p.other, p.code), savedPercent(1, 1-middle(p.parts))}
}

// byKind has the sums of the tasks of each kind.
func (r sections) byKind(encoding string, sizes []int) *table {
	t := &table{
		title: "By kind of task",
		note:  "The same sums without a cache, and what is saved of them with cached reads at a tenth.",
		head:  []string{"kind", "servers", "tasks", "direct", "code mode", "saved", "by task", "cached", "tasks", "tool search", "code mode", "saved", "by task", "cached"},
	}
	for _, kind := range r.kinds() {
		for _, servers := range sizes {
			row := []string{kind, number(servers)}
			for _, other := range []string{direct, search} {
				with := r.compareCells(other, servers, encoding, kind, cacheWeighing())
				row = append(append(row, r.compareCells(other, servers, encoding, kind, plain())...), with[3])
			}
			t.add(row...)
		}
	}
	return t
}

// breakEven tells from how many tokens of definitions on code mode is cheaper.
func (r sections) breakEven(servers int, encoding string) *table {
	each := r.each(servers, encoding)
	t := &table{
		title: "Break-even",
		note: fmt.Sprintf("From so many tokens of definitions on, direct calling costs as much as code mode does with %s; in parentheses, so many tools are that at the mean of these servers' tools, %s tokens each. "+
			"\"always\": code mode is cheaper even if definitions cost nothing. The last columns are what code mode saves over a tool search, without a cache.", count(servers, "server"), number(each)),
		head: []string{"task"},
	}
	for _, w := range weighings() {
		t.head = append(t.head, w.name)
	}
	for _, s := range drawing(r).sharedSizes() {
		t.head = append(t.head, fmt.Sprintf("over search, %d", s.Servers))
	}
	for _, task := range r.tasks(servers) {
		row := []string{task}
		for _, w := range weighings() {
			row = append(row, r.even(task, servers, encoding, each, w))
		}
		for _, s := range drawing(r).sharedSizes() {
			row = append(row, r.overSearch(task, s.Servers, encoding))
		}
		t.add(row...)
	}
	return t
}

// each is the mean of what a tool of one size costs.
func (r sections) each(servers int, encoding string) float64 {
	size := r.size(servers)
	return float64(size.Definitions[encoding]) / float64(max(1, size.Tools))
}

func (r sections) even(task string, servers int, encoding string, each float64, w weighing) string {
	a, b := r.of(task, direct, servers, encoding), r.of(task, code, servers, encoding)
	if a == nil || !a.Correct {
		return ""
	}
	n, ok := evenAt(a, b, w)
	switch {
	case !ok:
		return "never"
	case n == 0:
		return "always"
	case each == 0:
		return number(n)
	}
	return fmt.Sprintf("%s (%s)", number(n), number(float64(n)/each))
}

// evenAt is never where code mode has no answer.
func evenAt(direct, code *Line, w weighing) (tokens int, ok bool) {
	if !code.Valid() {
		return 0, false
	}
	return BreakEven(direct.Counts, code.WeightedCost(w.rates), w.rates)
}

func (r sections) overSearch(task string, servers int, encoding string) string {
	a, b := r.of(task, search, servers, encoding), r.of(task, code, servers, encoding)
	if !a.Valid() || !b.Valid() {
		return ""
	}
	return savedPercent(a.WeightedCost(plain().rates), b.WeightedCost(plain().rates))
}
