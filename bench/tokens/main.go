// Command tokens counts what a model reads and writes to do the tasks of package
// suite: by direct calls, with a tool that searches tools, and in code mode. All
// that is called is real, and every answer is checked.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/bench/tokens/report"
)

type options struct {
	sallyport, upstreams, catalog, out, docs, folder, transcripts string
	sizes                                                         []int // none for all that there are
	only                                                          *regexp.Regexp
	levels, modes, report                                         bool
	progress                                                      io.Writer
}

// part reports whether less than everything is measured, which is no result to keep.
func (o *options) part() bool { return len(o.sizes) > 0 || o.only != nil }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "tokens:", err)
	stop()
	os.Exit(1)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	switch {
	case o.levels:
		return printLevels(ctx, o, stdout)
	case o.modes:
		return printModes(ctx, o, stdout)
	case o.report:
		return rewrite(o)
	}
	r, err := measureAll(ctx, o)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, r.Text()); err != nil {
		return err
	}
	if err := keep(o, r); err != nil {
		return err
	}
	return wrong(r)
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{progress: stderr}
	flags := flag.NewFlagSet("tokens", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.sallyport, "sallyport", ".cache/bin/sallyport", "the binary; runsc is in the same folder")
	flags.StringVar(&o.upstreams, "upstreams", "tools/upstreams/node_modules", "node_modules with the pinned servers")
	flags.StringVar(&o.catalog, "catalog", "../shared/catalog", "folder of tools/list answers, one file a server; without it, 1 and 5 servers are all there is")
	flags.StringVar(&o.out, "out", "", "where results go, as FILE.jsonl and FILE.txt; nowhere when only a part is measured")
	flags.StringVar(&o.docs, "docs", "docs/explanation", "folder of benchmarks.md and benchmarks/, which a whole run updates")
	flags.StringVar(&o.folder, "folder", "/tmp/sallyport-bench", "where the tasks' world is; models read its path, so it counts")
	flags.StringVar(&o.transcripts, "transcripts", "", "folder to write down all that was said, a file for each task, mode and size")
	flags.BoolVar(&o.levels, "levels", false, "only print what tools cost at each level of detail")
	flags.BoolVar(&o.modes, "modes", false, "only print what clients show a model in each mode of serve, with the smallest catalogues")
	flags.BoolVar(&o.report, "report", false, "only make text and documents from FILE.jsonl")
	only := flags.String("only", "", "only tasks with a name that matches this regular expression")
	sizes := flags.String("sizes", "", "only these numbers of servers, such as 1,5,10,25,all")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("no argument is taken: %s", flags.Arg(0))
	}
	var err error
	o.sallyport, err = filepath.Abs(o.sallyport)
	return o, errors.Join(err, o.setOnly(*only), o.setSizes(*sizes), o.setOut())
}

func (o *options) setOnly(pattern string) (err error) {
	if pattern == "" {
		return nil
	}
	if o.only, err = regexp.Compile(pattern); err != nil {
		return fmt.Errorf("read -only: %w", err)
	}
	return nil
}

func (o *options) setSizes(text string) error {
	if text == "" {
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if word == "all" {
			n, err = all, nil
		}
		if err != nil || n != 1 && n < 5 {
			return fmt.Errorf("read -sizes: %q is neither 1, a number from 5 on, nor all", word)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.sizes)
	o.sizes = slices.Compact(o.sizes)
	return nil
}

// setOut leaves the results of a whole run alone when only a part is measured.
func (o *options) setOut() error {
	if o.out == "" && !o.part() {
		o.out = "bench/results/tokens"
	}
	if o.report && o.part() {
		return errors.New("-report takes no -only and no -sizes: it shows what is in the file")
	}
	return nil
}

func printLevels(ctx context.Context, o *options, stdout io.Writer) error {
	l, err := levels(ctx, o.catalog)
	if err != nil {
		return fmt.Errorf("count levels: %w", err)
	}
	if len(l.Rows) == 0 {
		_, err = fmt.Fprintf(stdout, "skipped: no catalogue of real tools in %s\n", o.catalog)
		return err
	}
	_, err = io.WriteString(stdout, l.Text())
	return err
}

// keep writes what was measured, and if that is everything, the documents.
func keep(o *options, r *report.Results) error {
	if o.out == "" {
		return nil
	}
	var lines bytes.Buffer
	if err := r.Write(&lines); err != nil {
		return err
	}
	if err := os.WriteFile(o.out+".jsonl", lines.Bytes(), 0o644); err != nil {
		return err
	}
	return show(o, r)
}

// rewrite makes text and documents from the lines of JSON.
func rewrite(o *options) error {
	f, err := os.Open(o.out + ".jsonl")
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := report.Read(f)
	if err != nil {
		return fmt.Errorf("%s.jsonl: %w", o.out, err)
	}
	return show(o, r)
}

// show makes the text, and the documents if the run is whole and all answers are right.
func show(o *options, r *report.Results) error {
	if err := os.WriteFile(o.out+".txt", []byte(r.Text()), 0o644); err != nil || o.part() {
		return err
	}
	if err := wrong(r); err != nil {
		return err
	}
	folder := filepath.Join(o.docs, "benchmarks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, plot := range r.Plots() {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	return r.Texts().Write(o.docs, report.Name)
}

// wrong is an error when something was answered wrong: it is in the results, and is to be seen.
func wrong(r *report.Results) error {
	if n, of := r.Wrong(); n > 0 {
		return fmt.Errorf("%d of %d answers are wrong; the text names them, and documents are not updated", n, of)
	}
	return nil
}
