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
		note: fmt.Sprintf("All tokens that are read and written. Turns: direct, tool search, code mode. Cached: what an earlier turn has read counts 0.1, from %s tokens. "+
			"**Bold**: code mode costs more than another mode. Parentheses: the context exceeds %s tokens, and the task is in no sum. \"wrong\": the answer is wrong.", number(tokencount.CacheMinimum), number(Window)),
	}
}

// definitionsTable is the table of what a client shows of its servers at each size.
func (r sections) definitionsTable(encoding string) *table {
	t := &table{
		title: "Definitions in each turn",
		note:  "Tokens of tool definitions that each turn reads: the mean over the tasks. With one server, it is the task's." + r.uncountedInstructions(encoding),
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
			return fmt.Sprintf(" The instructions of upstream servers are not counted in direct and tool search; they have %s tokens with %s.", number(n), count(s.Servers, "server"))
		}
	}
	return ""
}

// servers are those that are connected to, in the order in which they are added.
func (r sections) servers(encoding string) *table {
	t := &table{
		title: "The servers",
		note: "In the order in which they are added; \"from\" is the number of servers from which each is included. Servers that run come first, then those that are only shown, by number of tokens. " +
			"A second variant of a package comes last.",
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
		note: fmt.Sprintf("Sums over the tasks that direct calls, or the tool search, answer correctly in a context that fits. A task that code mode answers wrong is charged the other mode's cost as well. "+
			"Each row adds one rule to the row above: what an earlier turn has read comes from a cache at 0.1 (endpoints cache nothing shorter than %s tokens); "+
			"definitions and instructions are cached before the first turn, by an earlier conversation; a written token counts 5; a token that is stored in the cache counts 1.25. "+
			"Large tasks dominate a sum; \"by task\" is the median saving per task.", number(tokencount.CacheMinimum)),
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
		note:  "The same sums without a cache; \"cached\" is the saving with cached reads at 0.1.",
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
		note: fmt.Sprintf("With this many tokens of definitions, direct calls cost as much as code mode does with %s; in parentheses the number of tools, at these servers' mean of %s tokens per tool. "+
			"\"always\": code mode is cheaper even without definitions. The last columns are what code mode saves over a tool search, without a cache.", count(servers, "server"), number(each)),
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
