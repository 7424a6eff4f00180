package main

import (
	"fmt"
	"strings"
)

// chapter is a part of what readers see: rows with a case that begins with one of some words.
type chapter struct {
	heading string
	begins  []string
}

func chapters() []chapter {
	return []chapter{
		{"A program in the sandbox, beside the interpreter alone (and what client and pipe cost)", []string{"protocol", "warm pool", "processor time", "empty pool", "snapshot", "from nothing", "20 sessions"}},
		{"A call of a tool by a program, beside one by the MCP SDK's client (a Go function in place of a server has nothing beside it); with the guard, beside one without", []string{"tool call", "1,000 calls", "10 MB result", "guarded call"}},
		{"A start with 60 upstreams: the first answers, beside those of the SDK's least server; the first search of all, where nothing is known, beside the SDK's client that connects to the same 60", []string{"60 upstreams"}},
		{"Wrappers in both languages, beside reading and writing the same definitions as JSON", []string{"wrappers"}},
		{"The search index, beside bleve at its leanest and, where it says so, as it is by default", []string{"index", "query", "search_tools"}},
		{"Memory of sandboxes that wait", []string{"waiting"}},
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

// section is what a reader of docs/explanation/benchmarks.md sees.
func section(m machine, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d x %s, Linux %s, load %s at the start%s; commit %s, %s; tools: %s. Below 1 the ratio of the medians says that Sallyport is faster than the bare twin,\n", m.Cores, m.CPU, m.Kernel, load(m), m.busyNote(), m.Versions["commit"], m.Date, m.Versions["tools"])
	b.WriteString("which was measured by turns with it; of rates, too. A row without a ratio has no twin that does the same work. Where a sandbox waits, a program uses it up, and the next one starts when another waits:\n" +
		"what that takes is in no time, but in the rows on processor time, and in those of programs one right after the other. What each row is stands in [latency.txt](../../bench/results/latency.txt).\n")
	fmt.Fprintf(&b, "Of the %s.\n", tally(rows))
	for _, c := range chapters() {
		var table strings.Builder
		for _, r := range rows {
			if c.has(r) {
				table.WriteString(line(r))
			}
		}
		if table.Len() > 0 {
			fmt.Fprintf(&b, "\n**%s**\n\n| | unit | n | min | median | p99 (max if n < 100) | bare median | ratio | bar |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n%s", c.heading, table.String())
		}
	}
	return b.String()
}

// load is the first of the three figures.
func load(m machine) string {
	first, _, _ := strings.Cut(m.Load, " ")
	return first
}

func line(r row) string {
	name, bare, ratio := r.Case, "", ""
	if r.Language != "" {
		name += ", " + r.Language
	}
	if r.Bare != nil {
		bare, ratio = figure(r.Bare.P50), fmt.Sprintf("%.2f", r.Ratio)
	}
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", name, r.Unit, r.N, figure(r.Min), figure(r.P50), figure(r.P99), bare, ratio, r.barResults())
}
