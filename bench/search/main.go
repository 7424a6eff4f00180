// Command search measures how well search finds the right tool: recall, nDCG, MRR
// and hits on judged sets of queries, how often it refuses a good query or answers
// one that nothing fits, and the tokens that a model reads until the right tool is
// among them. Next to our own engine it runs bleve's default and mcpproxy-go's
// configuration of it. README.md says how the queries were written.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sallyport/internal/testutil/ireval"
)

// flags are what a run is asked for.
type flags struct {
	sources
	sets, engines string
	half          string
	json, compare string
	out, docs     string
	report        bool
	worst         int
	tokens        bool
	budget        int
	show          string
}

func main() {
	var f flags
	flag.StringVar(&f.retrieval, "retrieval", "../shared/retrieval", "folder of judged sets")
	flag.StringVar(&f.catalog, "catalog", "../shared/catalog", "folder of tools/list answers, one file a server")
	flag.StringVar(&f.queries, "queries", "bench/search/queries.jsonl", "queries over the catalogue")
	flag.StringVar(&f.sets, "sets", "", "sets or groups, with commas between: livemcp,catalog/plain (default all)")
	flag.StringVar(&f.sets, "set", "", "the same as -sets")
	flag.StringVar(&f.engines, "engines", strings.Join(engineNames(), ","), "what to run, ours first")
	flag.StringVar(&f.half, "half", "each", "all, odd (for tuning), even (for checking), apart (of these, without a task or tool of the odd ones) or each")
	flag.StringVar(&f.json, "json", "", "write every query's result to this file")
	flag.StringVar(&f.compare, "compare", "", "compare query by query with an earlier -json file")
	flag.StringVar(&f.out, "out", "", "write the report to `FILE`.txt and the means of each group to FILE.jsonl, if all sets are judged by all engines, with -tokens")
	flag.StringVar(&f.docs, "docs", "", "with -out: `FOLDER` of benchmarks.md and benchmarks/search.md, which a whole run updates")
	flag.BoolVar(&f.report, "report", false, "only make the documents from FILE.jsonl")
	flag.IntVar(&f.worst, "worst", 0, "print the N queries that were answered worst")
	flag.BoolVar(&f.tokens, "tokens", false, "count tokens through a real gateway as well (takes about half a minute)")
	flag.IntVar(&f.budget, "budget", 0, "with -tokens: the tokens of an answer, 0 is the gateway's default")
	flag.StringVar(&f.show, "show", "", "with -tokens: print the answers to the queries with this text in them")
	flag.Parse()
	if err := run(context.Background(), f, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags, out io.Writer) error {
	if f.report {
		return f.rewrite()
	}
	halves, err := halvesOf(f.half)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	rows, err := f.rows(ctx, out)
	if err != nil {
		return err
	}
	if f.json != "" {
		if err := writeRows(f.json, rows); err != nil {
			return err
		}
	}
	var text strings.Builder
	if err := report(io.MultiWriter(out, &text), rows, halves, strings.Split(f.engines, ",")); err != nil {
		return err
	}
	if f.whole(rows) {
		if err := f.keep(ctx, text.String(), rows); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	} else if f.out != "" {
		fmt.Fprintf(out, "\nnothing is written to %s: this was a part, and it keeps the whole\n", f.out)
	}
	if f.worst > 0 {
		printWorst(out, rows, f.worst, halves)
	}
	if f.compare == "" {
		return nil
	}
	before, err := readRows(f.compare)
	if err != nil {
		return err
	}
	return compare(out, before, rows, halves)
}

// whole reports whether everything is judged, and to be written: a part must not take the place of it.
func (f flags) whole(rows []row) bool {
	for _, name := range setNames() {
		if !slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(r.Group, name+"/") }) {
			return false
		}
	}
	return f.out != "" && f.tokens && f.budget == 0 && f.sets == "" && f.half == "each" && f.engines == strings.Join(engineNames(), ",")
}

// gatewayOptions holds the options of the gateway's client; nil disables it.
func (f flags) gatewayOptions(out io.Writer) *gatewayOptions {
	if !f.tokens {
		return nil
	}
	return &gatewayOptions{budget: f.budget, show: f.show, out: out}
}

// rows runs all engines on all sets that are asked for and that are there.
func (f flags) rows(ctx context.Context, out io.Writer) (rows []row, err error) {
	for _, name := range setNames() {
		if !f.wants(name) {
			continue
		}
		s, err := f.read(name)
		if errors.Is(err, ireval.ErrNoData) {
			fmt.Fprintf(out, "skipped %s: %v\n", name, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		s.Queries = f.only(s.Queries)
		more, err := runSet(ctx, s, strings.Split(f.engines, ","), f.gatewayOptions(out))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// check refuses sets that there are none of.
func (f flags) check() error {
	for word := range strings.SplitSeq(f.sets, ",") {
		if name, _, _ := strings.Cut(word, "/"); f.sets != "" && !slices.Contains(setNames(), name) {
			return fmt.Errorf("unknown set %q (use %s)", name, strings.Join(setNames(), ", "))
		}
	}
	return nil
}

// wants reports whether a set, or a group of it, is asked for.
func (f flags) wants(set string) bool {
	for word := range strings.SplitSeq(f.sets, ",") {
		if name, _, _ := strings.Cut(word, "/"); f.sets == "" || name == set {
			return true
		}
	}
	return false
}

// only drops the queries of groups that are not asked for.
func (f flags) only(queries []ireval.Query) (kept []ireval.Query) {
	for _, q := range queries {
		for word := range strings.SplitSeq(f.sets, ",") {
			if f.sets == "" || word == q.Group || !strings.Contains(word, "/") && strings.HasPrefix(q.Group, word+"/") {
				kept = append(kept, q)
				break
			}
		}
	}
	return kept
}

// results is the file that -json writes.
type results struct {
	Rows []row `json:"rows"`
}

func writeRows(path string, rows []row) error {
	data, err := json.MarshalIndent(results{rows}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

func readRows(path string) ([]row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r results
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r.Rows, nil
}
