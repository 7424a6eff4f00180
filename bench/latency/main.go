// Command latency measures what a program costs in Sallyport's sandbox: from an
// MCP client's call of execute_code to its result, as a ratio to the bare
// interpreter that the same harness starts in between; what a tool call from a
// program costs, with and without the guard; how many programs go through on this machine; and what a
// sandbox that waits takes of its memory. It prints a table with the bars that
// are met and missed, and writes it, with a line of JSON for each row, to a file.
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
	"syscall"
	"time"
)

func main() {
	if os.Getenv(upstreamVar) != "" {
		beUpstream()
		return
	}
	var o options
	flag.StringVar(&o.sallyport, "sallyport", ".cache/bin/sallyport", "the sallyport binary; runsc lies beside it")
	flag.StringVar(&o.modules, "checkers", "tools/typecheck/node_modules", "folder with the type checkers")
	flag.StringVar(&o.out, "out", "", "write the table to `FILE`.txt and JSON lines to FILE.jsonl, unless -only is given")
	flag.StringVar(&o.title, "title", "", "first line of the table")
	flag.IntVar(&o.n, "n", 30, "how often each thing is measured, at least")
	flag.BoolVar(&o.poolless, "poolless", false, "the binary is an old one that has no pool")
	flag.BoolVar(&o.strict, "strict", false, "exit status 1 when a bar is missed")
	only := flag.String("only", "", "regular expression of the groups to run: protocol, warm, pressed, checked, empty, again, nothing, calls, guard, sustained, memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := run(ctx, &o, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
	}
	if err != nil || missed > 0 && o.strict {
		stop()
		os.Exit(1)
	}
}

// options are what to measure, and how often.
type options struct {
	sallyport, modules, out, title string
	n                              int
	strict, poolless               bool
}

// group is something that is measured together; rows come in the order in which they are added.
type group struct {
	name    string
	measure func(ctx context.Context, b *bench) error
}

func groups() []group {
	return []group{
		{"protocol", protocol},
		{"warm", both(warm)},
		{"pressed", both(pressed)},
		{"checked", both(checked)},
		{"empty", both(empty)},
		{"again", both(again)},
		{"nothing", both(nothing)},
		{"calls", calls},
		{"guard", guard},
		{"sustained", sustained},
		{"memory", memory},
	}
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
	dir  string // of its own, short: sockets lie in it
	made int    // folders in it
	rows []row
}

// run measures everything whose group matches, and returns how many bars were missed.
func run(ctx context.Context, o *options, only string) (missed int, err error) {
	choice, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	for _, path := range []*string{&o.sallyport, &o.modules} {
		if *path, err = filepath.Abs(*path); err != nil {
			return 0, err
		}
	}
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp("/tmp", "spb-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	m := describe(ctx, o)
	fmt.Print(m.head(o.title), table(nil, true))
	begin := time.Now()
	for _, g := range groups() {
		if !choice.MatchString(g.name) {
			continue
		}
		if err := g.measure(ctx, b); err != nil {
			return 0, fmt.Errorf("measure %s: %w", g.name, err)
		}
	}
	m.Took = time.Since(begin).Round(time.Second).String()
	fmt.Print(verdict(b.rows))
	if o.out != "" && only == "" { // a part must not take the place of the whole
		err = write(o, m, b.rows)
	}
	return misses(b.rows), err
}

// add keeps a row, and shows it at once.
func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	fmt.Print(table([]row{r}, false))
}
