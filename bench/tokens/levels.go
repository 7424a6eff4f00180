package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/bench/agent"
	"sallyport/bench/stats"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/bench/tokens/report"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

// variant is a form in which search_tools describes a tool.
type variant struct {
	column   string
	detail   toolsearch.Detail
	language string
}

func variants() []variant {
	return []variant{
		{"names", toolsearch.Names, "python"}, {"summary", toolsearch.Summary, "python"},
		{"sig py", toolsearch.Signature, "python"}, {"sig ts", toolsearch.Signature, "typescript"},
		{"full py", toolsearch.Full, "python"}, {"full ts", toolsearch.Full, "typescript"},
	}
}

// columns are what one tool can be read as: as its server sends it, as clients show it, and as we tell of it.
func columns() []string {
	list := []string{"raw JSON", "definition"}
	for _, w := range variants() {
		list = append(list, w.column)
	}
	return list
}

// levels counts every tool of the catalogues of a folder at each level of detail.
func levels(ctx context.Context, dir string) (l report.Levels, err error) {
	catalogues, err := agent.ReadCatalogues(dir)
	if err != nil || len(catalogues) == 0 {
		return l, err
	}
	counter, err := tokens.O200k()
	if err != nil {
		return l, err
	}
	f, err := openGateway(ctx, catalogues)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l.Columns = columns()
	all := server{name: "all", counts: make([][]int, len(l.Columns))}
	for _, c := range catalogues {
		s, err := f.measure(ctx, counter, c)
		if err != nil {
			return l, fmt.Errorf("catalogue %s: %w", c.Name, err)
		}
		l.Rows = append(l.Rows, s.row(s.name, mean))
		for level, counts := range s.counts {
			all.counts[level] = append(all.counts[level], counts...)
		}
	}
	l.Rows = append(l.Rows, over(all)...)
	return l, nil
}

// over are the rows over all tools.
func over(all server) []report.Level {
	shown := total(all.counts[1])
	return []report.Level{
		all.row("all, mean", mean),
		all.row("all, median", func(counts []int) int { return int(summary(counts).P50) }),
		all.row("all, p99", func(counts []int) int { return int(summary(counts).P99) }),
		all.row("all, largest", func(counts []int) int { return int(summary(counts).Max) }),
		all.row("all, total", total),
		all.row("% of definition", func(counts []int) int { return (100*total(counts) + shown/2) / max(1, shown) }),
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

// measure counts all tools of a catalogue.
func (f *gatewayClient) measure(ctx context.Context, counter *tokens.Counter, c agent.Catalogue) (server, error) {
	s := server{name: c.Name, counts: make([][]int, len(columns()))}
	for _, raw := range c.Tools {
		texts, err := f.texts(ctx, c.Name, raw)
		if err != nil {
			return s, err
		}
		for level, text := range texts {
			n, err := counter.Count(text)
			if err != nil {
				return s, err
			}
			s.counts[level] = append(s.counts[level], n)
		}
	}
	return s, nil
}

// texts returns what a model reads of one tool, in the order of columns.
func (f *gatewayClient) texts(ctx context.Context, server string, raw json.RawMessage) ([]string, error) {
	var t struct {
		Name, Description string
		InputSchema       json.RawMessage
	}
	var sent, schema bytes.Buffer
	if err := errors.Join(json.Unmarshal(raw, &t), json.Compact(&sent, raw)); err != nil {
		return nil, err
	}
	if len(t.InputSchema) > 0 {
		if err := json.Compact(&schema, t.InputSchema); err != nil {
			return nil, err
		}
	}
	shown := tokencount.Definition{Name: suite.ToolName(server + "." + t.Name), Description: t.Description, InputSchema: schema.Bytes()}
	texts := []string{sent.String(), shown.Text()}
	id, known := f.ids[wire{tool.Identifier(server), t.Name}]
	if !known {
		return nil, fmt.Errorf("the gateway has no tool %s", t.Name)
	}
	for _, way := range variants() {
		text, err := f.describe(ctx, id, way)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func total(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func mean(counts []int) int { return (total(counts) + len(counts)/2) / max(1, len(counts)) }

func summary(counts []int) stats.Summary {
	values := make([]float64, len(counts))
	for i, n := range counts {
		values[i] = float64(n)
	}
	return stats.Summarize(values)
}
