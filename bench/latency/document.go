package main

import (
	"fmt"
	"strings"

	"sallyport/bench/doc"
	host "sallyport/bench/machine"
	"sallyport/bench/table"
)

// page is the name of the sections and of the page that are made from the results.
const page = "latency"

// chapter is a table of the page: rows with a case that begins with one of some words.
type chapter struct {
	title, note string
	begins      []string
}

func chapters() []chapter {
	return []chapter{
		{"Programs in the sandbox", "Twin: the interpreter alone. \"protocol alone\" is what client and pipe cost; its twin is the SDK's smallest server.",
			[]string{"protocol", "warm pool", "processor time", "empty pool", "snapshot", "from nothing", "20 sessions"}},
		{"Calls by a program", "Twin: a call by the client of the MCP SDK. A Go function in place of a server has no twin. For a guarded call: the same call without the guard.",
			[]string{"tool call", "1,000 calls", "10 MB result", "guarded call"}},
		{"A start with 60 upstreams", "Twin of the first answers: the SDK's smallest server. Twin of the first search without a cache: the SDK's client, connected to the same 60 upstreams.",
			[]string{"60 upstreams"}},
		{"Wrappers in both languages", "Twin: the same definitions, read and written as JSON.", []string{"wrappers"}},
		{"The search index", "Twin: bleve in its smallest form, or where a row says so, with its default mapping.", []string{"index", "query", "search_tools"}},
		{"Memory of waiting sandboxes", "Twin: the interpreter alone.", []string{"waiting"}},
	}
}

func (c chapter) has(r row) bool {
	for _, words := range c.begins {
		if strings.HasPrefix(r.Case, words) {
			return true
		}
	}
	return false
}

// texts returns what is written into the documents.
func texts(m machine, rows []row) doc.Texts {
	return doc.Texts{Losses: losses(rows), Summary: summary(rows), Tables: tables(m, rows)}
}

// losses returns what isolation costs, and the missed targets.
func losses(rows []row) string {
	slower, twins := 0, 0
	for _, r := range rows {
		if r.Bare == nil {
			continue
		}
		twins++
		if r.Ratio > 1 {
			slower++
		}
	}
	text := isolation(rows) + fmt.Sprintf("- In %d of %d rows with a bare twin, Sallyport is slower or larger than the twin.\n- %s.\n", slower, twins, table.Tally(rows))
	if missed := missedTargets(rows); missed != "" {
		text += "\n| missed | measured | target |\n| --- | --- | --- |\n" + missed
	}
	return text
}

// missedTargets returns one line of a table for each missed target, with the figures of all languages.
func missedTargets(rows []row) string {
	var targets []string
	got := map[string][]string{}
	for _, r := range rows {
		for _, b := range r.Bars {
			if b.Met {
				continue
			}
			target := fmt.Sprintf("| %s | %s %%s | %s %g |\n", strings.ReplaceAll(r.Case, "%", "%%"), b.What, b.Sign(), b.Limit)
			if got[target] == nil {
				targets = append(targets, target)
			}
			got[target] = append(got[target], strings.TrimSpace(fmt.Sprintf("%.4g %s", b.Got, r.Language)))
		}
	}
	var b strings.Builder
	for _, target := range targets {
		fmt.Fprintf(&b, target, strings.Join(got[target], ", "))
	}
	return b.String()
}

// isolation returns what a sandbox costs where none is ready, as a line of a list.
func isolation(rows []row) string {
	python, typescript := find(rows, "empty pool", "python"), find(rows, "empty pool", "typescript")
	sessions := find(rows, "20 sessions at once: programs a second", "")
	if python.Bare == nil || typescript.Bare == nil || sessions.Bare == nil {
		return ""
	}
	return fmt.Sprintf("- A program of one line takes %.0f (Python) or %.1f (TypeScript) times as long as the interpreter alone if no sandbox waits; 20 sessions run %.1f programs a second, bare interpreters %.1f.\n",
		python.Ratio, typescript.Ratio, sessions.P50, sessions.Bare.P50)
}

// load is a row of the table of the summary: a case, and what it says about the load.
type load struct{ name, about string }

func loads() []load {
	return []load{
		{"warm pool (one waits, each run uses one up)", "at rest: a sandbox waits"},
		{"warm pool, one right after the other", "back to back: fifty without a pause"},
		{"empty pool", "empty pool: no sandbox waits"},
		{"from nothing, since the call", "first program on a machine"},
		{"warm pool, one right after the other: processor time a program", "processor time, back to back"},
		{"processor time a program, refill included", "processor time, a sandbox for each program"},
	}
}

// summary returns times of programs at rest and under load, and the main rows about everything else.
func summary(rows []row) string {
	var b strings.Builder
	b.WriteString("| a program of one line, ms: median (p99 or maximum) | Python | interpreter alone | TypeScript | interpreter alone |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, l := range loads() {
		python, typescript := find(rows, l.name, "python"), find(rows, l.name, "typescript")
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.about, spread(python), spread(typescript))
	}
	one, rate := find(rows, "20 sessions at once: one program", ""), find(rows, "20 sessions at once: programs a second", "")
	fmt.Fprintf(&b, "| 20 sessions at once, both languages | %s | | |\n", spread(one))
	if rate.Bare != nil {
		fmt.Fprintf(&b, "\nTogether, 20 sessions run %.1f programs a second; 20 bare interpreters run %.1f.\n", rate.P50, rate.Bare.P50)
	}
	b.WriteString("\n| at rest, one client | unit | median | bare twin | ratio |\n| --- | --- | ---: | ---: | ---: |\n")
	for _, r := range rows {
		if inSummary(r) {
			bare, ratio := "", ""
			if r.Bare != nil {
				bare, ratio = rounded(r.Bare.P50), rounded(r.Ratio)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Name(), r.Unit, rounded(r.P50), bare, ratio)
		}
	}
	return b.String()
}

// inSummary reports whether a row is in the second table of the summary.
func inSummary(r row) bool {
	switch r.Case {
	case "tool call, function", "tool call, MCP server", "waiting sandbox, PSS", "index of 2,000 tools", "query of 2,000 tools", "search_tools with 2,000 tools",
		"60 upstreams, stdio, no cache: search of all", "60 upstreams, stdio, cache, connects to none: search of all":
		return true
	}
	return false
}

// find returns the row of a case, or an empty one.
func find(rows []row, name, language string) row {
	for _, r := range rows {
		if r.Case == name && r.Language == language {
			return r
		}
	}
	return row{}
}

// spread returns two cells: median and p99 of a row, and the median of its twin.
func spread(r row) string {
	switch {
	case r.N == 0:
		return "|"
	case r.Bare == nil:
		return fmt.Sprintf("%s (%s) |", rounded(r.P50), rounded(r.P99))
	}
	return fmt.Sprintf("%s (%s) | %s", rounded(r.P50), rounded(r.P99), rounded(r.Bare.P50))
}

// rounded returns a figure with two digits, or all before the point.
func rounded(f float64) string {
	switch {
	case f < 1:
		return fmt.Sprintf("%.2f", f)
	case f < 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// tables returns all rows.
func tables(m machine, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s at commit %s, on %d x %s with Linux %s, load %s at the start%s. Tools: %s. %s.\n", m.Date, m.Versions["commit"], m.Cores, m.CPU, m.Kernel, host.MeanLoad(m.Load), host.BusyNote(m.Busy), m.Versions["tools"], table.Tally(rows))
	for _, c := range chapters() {
		var lines strings.Builder
		for _, r := range rows {
			if c.has(r) {
				lines.WriteString(r.Line())
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&b, "\n### %s\n%s\n\n%s%s", c.title, c.note, table.Heading, lines.String())
		}
	}
	return b.String()
}

// readResults reads what write wrote.
func readResults(path string) (*machine, []row, error) { return table.ReadResults[machine](path) }

// rewrite makes text and documents from FILE.jsonl.
func (o *options) rewrite() error {
	m, rows, err := readResults(o.out + ".jsonl")
	if err != nil {
		return err
	}
	return o.show(m, rows)
}
