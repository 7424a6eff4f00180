// Command firsttry runs programs as language models write them, mistakes included, on a real gateway with real
// sandboxes, and judges what a model would learn: the answer is right, or an error that leads to a repair, or one that
// does not, or it is wrong and looks right. The programs are in cases/, each with the public text that shows the
// mistake.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"sallyport/bench/firsttry/fixture"
	"sallyport/internal/tokens"
)

// options are the command line.
type options struct {
	setup
	only      string
	verbose   bool
	out, docs string
}

func main() {
	var o options
	flag.StringVar(&o.Runsc, "runsc", "", "path of runsc")
	flag.StringVar(&o.Checkers, "checkers", "", "node_modules folder with pyright and typescript; without it no types are checked")
	flag.StringVar(&o.Snapshots, "snapshots", "", "folder for snapshots of interpreters")
	flag.StringVar(&o.only, "only", "", "run only the cases whose name, mistake, task or language matches this pattern, and save nothing")
	flag.BoolVar(&o.verbose, "v", false, "print the answers of cases that are neither right nor taught")
	flag.StringVar(&o.out, "out", "", "save the results to this path with .txt and .jsonl")
	flag.StringVar(&o.docs, "docs", "", "write the tables of the pages in this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "firsttry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options) (err error) {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	all, err := readCases()
	if err != nil {
		return err
	}
	chosen := filter(all, func(t trial) bool {
		return pattern.MatchString(t.Name) || pattern.MatchString(t.mistake) || pattern.MatchString(t.Task) || pattern.MatchString(t.Language)
	})
	if o.DataDir, err = os.MkdirTemp("", "firsttry-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.DataDir)) }()
	outcomes, err := judgeAll(ctx, o.setup, chosen, func(o2 outcome) { progress(w, o2, o.verbose) })
	if err != nil {
		return err
	}
	text := table(outcomes) + "\n" + worst(outcomes)
	if _, err := fmt.Fprintln(w, text); err != nil || o.only != "" {
		return err
	}
	return errors.Join(save(o.out, text, outcomes), writeDocs(o.docs, outcomes))
}

// judgeAll judges the cases on a new gateway, and calls each after every one.
func judgeAll(ctx context.Context, s setup, cases []trial, each func(outcome)) (list []outcome, err error) {
	counter, err := tokens.O200k()
	if err != nil {
		return nil, err
	}
	world := fixture.NewWorld()
	in, err := open(ctx, world, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	j := &judge{runner: in, world: world, tasks: tasks(world)}
	for _, t := range cases {
		o, err := j.judge(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", t.Name, err)
		}
		if o.Tokens, err = counter.Count(o.Answer); err != nil {
			return nil, err
		}
		each(o)
		list = append(list, o)
	}
	return list, nil
}

func progress(w io.Writer, o outcome, verbose bool) {
	if o.Verdict == right || o.Verdict == taught {
		return
	}
	fmt.Fprintf(w, "%s: %s (%s)\n", o.Name, o.Verdict, o.Language)
	if !verbose {
		return
	}
	fmt.Fprintf(w, "%s\n", indent(o.Answer))
	for _, r := range o.Repairs {
		fmt.Fprintf(w, "  repair: %s\n", indent(r))
	}
}
