// Command latency measures how long Sallyport takes, and for comparison, in
// the same run, something bare that does the same: a program in the sandbox, from an
// MCP client's call of execute_code to its result, compared with the interpreter alone; a
// tool call from a program, with and without the guard, compared with a call of the SDK's client; a start
// with 60 upstreams compared with the SDK's least server and, until all can be searched, its client with the same 60; wrappers compared with
// encoding/json; an index of up to 100,000 tools and a search of it compared with bleve at its leanest. It
// also says what processor time a program takes with the replacement of its sandbox, how many programs
// go through on this machine, and what a sandbox that waits takes of its memory. It prints a table with the bars that are met and
// missed, and writes it, with a line of JSON for each row, to a file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/bench/corpus"
	host "sallyport/bench/machine"
	"sallyport/bench/procs"
	"sallyport/bench/table"
)

func main() {
	if what := os.Getenv(upstreamVar); what != "" {
		beUpstream(what)
		return
	}
	var o options
	flag.StringVar(&o.sallyport, "sallyport", ".cache/bin/sallyport", "the sallyport binary; runsc is in the same folder")
	flag.StringVar(&o.modules, "checkers", "tools/typecheck/node_modules", "folder with the type checkers")
	flag.StringVar(&o.catalog, "catalog", "../shared/catalog", "folder of tools/list answers, one file a server; without it tools are made up")
	flag.StringVar(&o.queries, "queries", "bench/search/queries.jsonl", "what search is asked")
	sizes := flag.String("sizes", allSizes, "how many tools are indexed and searched, with commas between")
	flag.StringVar(&o.out, "out", "", "write the table to `FILE`.txt and JSON lines to FILE.jsonl, if the run is a whole one")
	flag.StringVar(&o.docs, "docs", "", "with -out: `FOLDER` of benchmarks.md and benchmarks/latency.md, which a whole run updates")
	flag.BoolVar(&o.report, "report", false, "only make text and documents from FILE.jsonl")
	flag.StringVar(&o.title, "title", "", "first line of the table")
	flag.IntVar(&o.n, "n", 30, "how often each thing is measured, at least")
	flag.BoolVar(&o.poolless, "poolless", false, "the binary is an old one that has no pool")
	flag.BoolVar(&o.busy, "busy", false, "with -out: measure on a busy machine all the same, and say so in the head")
	flag.BoolVar(&o.strict, "strict", false, "exit status 1 when a bar is missed")
	only := flag.String("only", "", "regular expression of the groups to run: "+strings.Join(names(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := o.run(ctx, *only, *sizes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
	}
	if err != nil || missed > 0 && o.strict {
		stop()
		os.Exit(1)
	}
}

// leastN is how often each thing is measured in results that are kept.
const leastN = 30

// allSizes are how many tools are indexed and searched.
const allSizes = "100,2000,100000"

// options are what to measure, and how often.
type options struct {
	sallyport, modules string
	out, docs, title   string
	catalog, queries   string
	sizes              []int
	n                  int
	strict, poolless   bool
	report             bool
	busy               bool
	// partialReason is why this run must not replace the results; empty if it may.
	partialReason string
}

// run measures, or makes the documents again.
func (o *options) run(ctx context.Context, only, sizes string) (missed int, err error) {
	if o.report {
		return 0, o.rewrite()
	}
	return o.measure(ctx, only, sizes)
}

// measure checks what was asked for, and runs it.
func (o *options) measure(ctx context.Context, only, sizes string) (missed int, err error) {
	if o.n < 1 {
		return 0, fmt.Errorf("-n is %d: measure at least once", o.n)
	}
	for word := range strings.SplitSeq(sizes, ",") {
		size, err := strconv.Atoi(word)
		if err != nil || size < 1 {
			return 0, fmt.Errorf("-sizes %q: %q is no number of tools", sizes, word)
		}
		o.sizes = append(o.sizes, size)
	}
	choice, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("-only: %w", err)
	}
	if !slices.ContainsFunc(names(), choice.MatchString) {
		return 0, fmt.Errorf("-only %q: no group has such a name (use %s)", only, strings.Join(names(), ", "))
	}
	o.partialReason = o.partial(only, sizes)
	return run(ctx, o, choice)
}

// partial says why what is measured is not the whole of it, if so.
func (o *options) partial(only, sizes string) string {
	switch {
	case only != "" || sizes != allSizes:
		return "-only or -sizes leaves something out"
	case o.n < leastN:
		return fmt.Sprintf("-n is below %d", leastN)
	case o.poolless:
		return "-poolless is for an old binary"
	}
	return ""
}

// group is something that is measured together; rows come in the order in which they are added.
type group struct {
	name    string
	measure func(ctx context.Context, b *bench) error
}

func groups() []group {
	return []group{
		{"protocol", protocol},
		{"warm", both(warmPool)},
		{"pressed", both(backToBack)},
		{"checked", both(withTypeChecker)},
		{"empty", both(emptyPool)},
		{"again", both(snapshotStart)},
		{"nothing", both(coldStart)},
		{"calls", calls},
		{"guard", guard},
		{"sustained", measureSustained},
		{"neighbor", measureNeighbor},
		{"memory", memory},
		{"startup", startup},
		{"generate", generate},
		{"index", indexing},
		{"search", searching},
	}
}

func names() (names []string) {
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}

// both measures the same in either language.
func both(measure func(ctx context.Context, b *bench, l language) error) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		for _, l := range languages() {
			if err := measure(ctx, b, l); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
		return nil
	}
}

// bench is one run of the benchmark.
type bench struct {
	*options
	dir     string // of its own, short: sockets lie in it
	folders int    // folders in it
	rows    []row
	// tools is what indexes are made of, last the two that were made last.
	tools *corpus.Source
	last  *pair
}

// run measures everything in matching groups, and returns how many bars were missed.
func run(ctx context.Context, o *options, choice *regexp.Regexp) (missed int, err error) {
	for _, path := range []*string{&o.sallyport, &o.modules} {
		if *path, err = filepath.Abs(*path); err != nil {
			return 0, err
		}
	}
	if err := procs.Adopt(); err != nil { // otherwise the sandboxes' processor time is not counted
		fmt.Fprintln(os.Stderr, "latency: processor time of what has ended is not known:", err)
	}
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp("/tmp", "spb-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	m := describe(ctx, o)
	if from, err := b.source(); err == nil { // if not, a group that needs it says why
		o.use(m, from)
	}
	if err := o.mayWrite(m); err != nil {
		return 0, err
	}
	fmt.Print(m.head(o.title), table.Text(nil, true))
	begin := time.Now()
	for _, g := range groups() {
		if !choice.MatchString(g.name) {
			continue
		}
		if err := g.measure(ctx, b); err != nil {
			return 0, errors.Join(fmt.Errorf("measure %s: %w", g.name, err), writePartial(o, m, b.rows))
		}
	}
	m.Took = time.Since(begin).Round(time.Second).String()
	fmt.Print(verdict(b.rows))
	if o.out != "" && o.partialReason == "" {
		err = write(o, m, b.rows)
	}
	return table.Misses(b.rows), err
}

// use says what the tools are. Results that are kept are of real ones.
func (o *options) use(m *machine, from *corpus.Source) {
	m.Versions["tools"], m.Digests["tools"] = from.Name(), from.Digest()
	if !from.Real && o.partialReason == "" {
		o.partialReason = "there is no catalogue in " + o.catalog + ", so tools are made up"
	}
}

// mayWrite says, before anything is measured, what will not be written, and that a busy machine is none to measure on.
func (o *options) mayWrite(m *machine) (err error) {
	if o.out == "" {
		return nil
	}
	if o.partialReason != "" {
		fmt.Fprintf(os.Stderr, "latency: %s: %s.txt and .jsonl stay as they are\n", o.partialReason, o.out)
		return nil
	}
	m.Busy, err = host.CheckLoad(m.Load, m.Cores, o.busy)
	return err
}

func (b *bench) close() error {
	return errors.Join(os.RemoveAll(b.dir), b.release())
}

// add keeps a row, and shows it at once.
func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	fmt.Print(table.Text([]row{r}, false))
}
