// Command tokens prints what tools cost a model to read, in tokens of
// o200k_base: a row for each server of the catalogue of real tools beside the
// project, and for all of them, with a column for each level of detail and one
// for the definitions as a client without Sallyport puts them into the context.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"sallyport/codegen"
	"sallyport/internal/plain"
	"sallyport/internal/tokens"
	"sallyport/internal/tool"
)

func main() {
	dir := flag.String("catalog", "../shared/catalog", "folder of tools/list answers, one file a server")
	flag.Parse()
	if err := run(*dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func run(dir string, out io.Writer) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		fmt.Fprintf(out, "skipped: no catalogue of real tools in %s\n", dir)
		return nil
	}
	counter, err := tokens.O200k()
	if err != nil {
		return err
	}
	var servers []server
	for _, path := range paths {
		s, err := measure(counter, path)
		if err != nil {
			return fmt.Errorf("measure %s: %w", path, err)
		}
		servers = append(servers, s)
	}
	return report(out, servers)
}

// levels are the columns: what one tool is to be read as.
var levels = []string{"raw JSON", "names", "summary", "sig py", "sig ts", "full py", "full ts"}

// server holds the counts of one server's tools, by level.
type server struct {
	name   string
	counts [][]int
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

func measure(counter *tokens.Counter, path string) (server, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return server{}, err
	}
	var list struct{ Tools []definition }
	if err := json.Unmarshal(data, &list); err != nil {
		return server{}, err
	}
	s := server{name: strings.TrimSuffix(filepath.Base(path), ".json"), counts: make([][]int, len(levels))}
	var wires []string
	for _, d := range list.Tools {
		wires = append(wires, d.Name)
	}
	for i, id := range tool.Identifiers(wires) {
		for level, text := range texts(tool.Identifier(s.name), id, list.Tools[i]) {
			n, err := counter.Count(text)
			if err != nil {
				return server{}, err
			}
			s.counts[level] = append(s.counts[level], n)
		}
	}
	return s, nil
}

// texts returns what a model reads of one tool, in the order of levels: the words
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

func report(out io.Writer, servers []server) error {
	all := server{name: "all", counts: make([][]int, len(levels))}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "tokens per tool, mean\t tools\t %s\t\n", strings.Join(levels, "\t "))
	for _, s := range servers {
		row(w, s.name, s, mean)
		for level, counts := range s.counts {
			all.counts[level] = append(all.counts[level], counts...)
		}
	}
	row(w, "all, mean", all, mean)
	row(w, "all, median", all, func(counts []int) int { return quantile(counts, 50) })
	row(w, "all, p90", all, func(counts []int) int { return quantile(counts, 90) })
	row(w, "all, p99", all, func(counts []int) int { return quantile(counts, 99) })
	row(w, "all, total", all, total)
	row(w, "% of raw", all, func(counts []int) int {
		return (100*total(counts) + total(all.counts[0])/2) / max(1, total(all.counts[0]))
	})
	return w.Flush()
}

func row(w io.Writer, name string, s server, of func([]int) int) {
	fmt.Fprintf(w, "%s\t %d\t", name, len(s.counts[0]))
	for _, counts := range s.counts {
		fmt.Fprintf(w, " %d\t", of(counts))
	}
	fmt.Fprintln(w)
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
