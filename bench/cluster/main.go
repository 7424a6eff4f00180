// Command cluster measures what workers cost and bring: a program, a call and a result of 10 MB on a worker, by turns
// with the same on a gateway that runs its programs itself; the processor time of gateway, servers and worker; and how
// the throughput of programs that wait grows with the number of workers. Gateways, workers and sandboxes are real
// processes, and the NATS server has TLS.
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/bench/procs"
	"sallyport/bench/table"
	"sallyport/internal/testutil/natscluster"
)

func main() {
	natscluster.Serve()
	var o options
	flag.StringVar(&o.sallyport, "sallyport", ".cache/bin/sallyport", "the sallyport binary; runsc is in the same folder")
	flag.StringVar(&o.out, "out", "", "write the table to `FILE`.txt and JSON lines to FILE.jsonl, if the run is a whole one")
	flag.StringVar(&o.docs, "docs", "", "with -out: `FOLDER` of benchmarks/cluster.md, which a whole run updates")
	flag.BoolVar(&o.report, "report", false, "only make text and documents from FILE.jsonl")
	flag.BoolVar(&o.plan, "plan", false, "only print the capacity plan, or with -docs write it into capacity.md")
	flag.StringVar(&o.figures, "figures", "", "with -plan: figures of your own in a JSON `FILE`; those that it does not have are the measured ones")
	flag.IntVar(&o.n, "n", leastN, "how often a program is measured")
	flag.IntVar(&o.servers, "servers", 1, "NATS servers")
	flag.IntVar(&o.seats, "seats", 16, "seats of each worker")
	flag.IntVar(&o.waits, "waits", 40, "calls of half a second that a program which waits makes, one after the other")
	flag.BoolVar(&o.busy, "busy", false, "with -out: measure on a busy machine all the same, and say so in the head")
	flag.BoolVar(&o.strict, "strict", false, "exit status 1 when a bar is missed")
	counts := flag.String("workers", keptWorkers, "how many workers run the programs that wait, with commas between")
	only := flag.String("only", "", "regular expression of what to measure: compare, cost, record, throughput")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := o.run(ctx, *only, *counts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
	}
	if err != nil || missed > 0 && o.strict {
		stop()
		os.Exit(1)
	}
}

const (
	// leastN is how often a program is measured in results that are kept.
	leastN = 100
	// keptWorkers are the numbers of workers in results that are kept.
	keptWorkers = "1,2,4"
)

// options are what to measure, and how.
type options struct {
	sallyport, out, docs     string
	figures                  string
	plan                     bool
	n, servers, seats, waits int
	workers                  []int
	busy, strict, report     bool
}

// bench is one run.
type bench struct {
	*options
	dir  string // short: sockets lie in it
	rows []table.Row
}

// group is something that is measured together.
type group struct {
	name    string
	measure func(ctx context.Context, b *bench) error
}

func groups() []group {
	return []group{{"compare", compare}, {"cost", cost}, {"record", record}, {"throughput", throughput}}
}

// run measures, or makes the documents again.
func (o *options) run(ctx context.Context, only, counts string) (missed int, err error) {
	switch {
	case o.plan:
		return 0, o.makePlan()
	case o.report:
		return 0, o.rewrite()
	}
	choice, err := regexp.Compile(only)
	if err != nil {
		return 0, fmt.Errorf("-only: %w", err)
	}
	if err := o.check(counts); err != nil {
		return 0, err
	}
	m := o.describe(ctx)
	if err := o.mayWrite(m); err != nil {
		return 0, err
	}
	rows, err := o.measure(ctx, m, choice)
	if err == nil && o.out != "" && only == "" && counts == keptWorkers && o.n >= leastN {
		err = o.write(m, rows)
	}
	return table.Misses(rows), err
}

// check reads the numbers of workers, and finds the binary.
func (o *options) check(counts string) (err error) {
	for word := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-workers %q: %q is no number of workers", counts, word)
		}
		o.workers = append(o.workers, n)
	}
	if o.n < 1 || o.servers < 1 || o.seats < 1 || o.waits < 1 {
		return errors.New("-n, -servers, -seats and -waits are at least 1")
	}
	o.sallyport, err = filepath.Abs(o.sallyport)
	return err
}

// measure measures all groups that are chosen, and prints the rows.
func (o *options) measure(ctx context.Context, m *machine, choice *regexp.Regexp) (rows []table.Row, err error) {
	if err := procs.Adopt(); err != nil { // otherwise the sandboxes' processor time is not counted
		return nil, err
	}
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp("/tmp", "spc-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	fmt.Print(m.head(), table.Text(nil, true))
	begin := time.Now()
	for _, g := range groups() {
		if !choice.MatchString(g.name) {
			continue
		}
		if err := g.measure(ctx, b); err != nil {
			return b.rows, fmt.Errorf("measure %s: %w", g.name, err)
		}
	}
	m.Took = time.Since(begin).Round(time.Second).String()
	fmt.Print(notes(b.rows))
	return b.rows, nil
}

// add keeps a row, and shows it at once.
func (b *bench) add(r table.Row) {
	b.rows = append(b.rows, r)
	fmt.Print(table.Text([]table.Row{r}, false))
}
