package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/bench/agent"
	"sallyport/bench/tokens/report"
	"sallyport/codegen"
	"sallyport/internal/plain"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// columns are what one tool can be read as.
func columns() []string {
	return []string{"raw JSON", "names", "summary", "sig py", "sig ts", "full py", "full ts"}
}

// levels counts every tool of the catalogues of a folder at each level of detail.
func levels(dir string) (report.Levels, error) {
	l := report.Levels{Columns: columns()}
	catalogues, err := agent.ReadCatalogues(dir)
	if err != nil || len(catalogues) == 0 {
		return report.Levels{}, err
	}
	counter, err := tokens.O200k()
	if err != nil {
		return l, err
	}
	all := server{name: "all", counts: make([][]int, len(l.Columns))}
	for _, c := range catalogues {
		s, err := measure(counter, c)
		if err != nil {
			return l, err
		}
		l.Rows = append(l.Rows, s.row(s.name, mean))
		for level, counts := range s.counts {
			all.counts[level] = append(all.counts[level], counts...)
		}
	}
	return report.Levels{Columns: l.Columns, Rows: append(l.Rows, over(all)...)}, nil
}

// over are the rows over all tools.
func over(all server) []report.Level {
	raw := total(all.counts[0])
	return []report.Level{
		all.row("all, mean", mean),
		all.row("all, median", func(counts []int) int { return quantile(counts, 50) }),
		all.row("all, p90", func(counts []int) int { return quantile(counts, 90) }),
		all.row("all, p99", func(counts []int) int { return quantile(counts, 99) }),
		all.row("all, total", total),
		all.row("% of raw", func(counts []int) int { return (100*total(counts) + raw/2) / max(1, raw) }),
	}
}

// server holds the counts of one server's tools, by level.
type server struct {
	name   string
	counts [][]int
}

func (s server) row(name string, of func([]int) int) report.Level {
	l := report.Level{Name: name, Tools: len(s.counts[0])}
	for _, counts := range s.counts {
		l.Counts = append(l.Counts, of(counts))
	}
	return l
}

// definition is a tool as it stands in a tools/list answer.
type definition struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	raw                       []byte
}

// UnmarshalJSON keeps the definition as it was sent, without white space.
func (d *definition) UnmarshalJSON(data []byte) error {
	type plainDefinition definition
	var raw bytes.Buffer
	err := errors.Join(json.Unmarshal(data, (*plainDefinition)(d)), json.Compact(&raw, data))
	d.raw = raw.Bytes()
	return err
}

func measure(counter *tokens.Counter, c agent.Catalogue) (server, error) {
	s := server{name: c.Name, counts: make([][]int, len(columns()))}
	list, wires := make([]definition, len(c.Tools)), make([]string, len(c.Tools))
	for i, data := range c.Tools {
		if err := json.Unmarshal(data, &list[i]); err != nil {
			return server{}, fmt.Errorf("catalogue %s: %w", c.Name, err)
		}
		wires[i] = list[i].Name
	}
	for i, id := range tool.Identifiers(wires) {
		for level, text := range texts(tool.Identifier(s.name), id, list[i]) {
			n, err := counter.Count(text)
			if err != nil {
				return server{}, err
			}
			s.counts[level] = append(s.counts[level], n)
		}
	}
	return s, nil
}

// texts returns what a model reads of one tool, in the order of columns: the words
// are those of search_tools, which puts the summary above a signature.
func texts(upstream, name string, d definition) []string {
	t := tool.Tool{
		ID: tool.ID{Upstream: upstream, Name: name}, Wire: d.Name, Title: d.Title, Description: d.Description,
		Input: d.InputSchema, Output: d.OutputSchema,
	}
	return []string{
		string(d.raw), t.ID.String(), t.ID.String() + ": " + summary(t),
		codegen.Signature(t, codegen.Python), codegen.Signature(t, codegen.TypeScript),
		codegen.Describe(t, codegen.Python).Text, codegen.Describe(t, codegen.TypeScript).Text,
	}
}

// summary is about what search_tools shows in one line.
func summary(t tool.Tool) string {
	text, _, _ := strings.Cut(plain.Line(t.Description, 2000), ". ")
	return strings.TrimSuffix(plain.Line(text, 120), ".")
}

func total(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func mean(counts []int) int { return (total(counts) + len(counts)/2) / max(1, len(counts)) }

func quantile(counts []int, percent int) int {
	sorted := slices.Sorted(slices.Values(counts))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100]
}
