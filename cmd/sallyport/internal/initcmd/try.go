package initcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// TryCommand returns the verb.
func TryCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var language string
	cmd := &cobra.Command{
		Use:   "try [flags] [FILE]",
		Short: "run a program against sample servers, without any settings",
		Long: `Try needs no settings, no network and no other MCP server: sallyport itself is two
sample servers, shop (list_orders, get_customer) and notes (add_note, list_notes).
Without FILE it shows what a model does: it searches, and runs a program that calls
functions of both. With FILE it runs that program; - is stdin.

Everything is in a temporary folder, which is removed at the end. Your settings are
not read, and nothing is written outside that folder.

Exit status: as of exec.`,
		Example: `  sallyport try
  sallyport try report.py
  echo 'from servers.shop import list_orders; list_orders()' | sallyport try -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Misuse(cmd, "try runs one FILE, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.try(cmd.Context(), args, language) },
	}
	cmd.Flags().StringVar(&language, "language", "", "run it as `LANGUAGE`: python or typescript")
	cli.CompleteFlag(cmd, "language", "python", "typescript")
	return cmd
}

const (
	tryQuery   = "orders and customers of a shop"
	tryProgram = `from collections import Counter
from servers.shop import get_customer, list_orders
from servers.notes import add_note

totals = Counter()
for order in list_orders()["orders"]:
    totals[order["customer"]] += order["amount"]
best, amount = totals.most_common(1)[0]
add_note("best customer", f"{best} of {get_customer(best)['city']}")
totals.most_common(3)`
)

func (a *app) try(ctx context.Context, files []string, language string) error {
	if len(files) == 0 {
		return a.withSamples(ctx, a.showSamples)
	}
	program, err := a.readProgram(files[0], language)
	if err != nil {
		return err
	}
	return a.withSamples(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		result, err := a.run(ctx, g, program)
		if err != nil {
			return err
		}
		return a.printResult(result, "")
	})
}

// run runs a program, with a progress.
func (a *app) run(ctx context.Context, g *gateway.Gateway, program execution.Program) (execution.Result, error) {
	p := a.Progress("running the program", 0)
	defer p.Stop()
	return g.Executor.Execute(ctx, program)
}

// printResult prints what a model reads of a program: to stderr if it failed, else to stdout with a text after it.
func (a *app) printResult(e execution.Result, after string) error {
	if e.Failed() {
		fmt.Fprintln(a.Stderr, cli.Clean(e.Text()))
		return cli.ExecutionStatus(e)
	}
	return a.Print(e.Text() + after)
}

// readProgram reads the program of the user.
func (a *app) readProgram(file, language string) (execution.Program, error) {
	if language == "" {
		var err error
		if language, err = cli.LanguageOf(file); err != nil {
			return execution.Program{}, err
		}
	}
	in := a.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return execution.Program{}, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err}
		}
		defer f.Close()
		in = f
	}
	code, err := io.ReadAll(io.LimitReader(in, execution.MaxCode+1))
	return execution.Program{Code: string(code), Language: language}, err
}

// withSamples calls use with a gateway in front of the sample servers. All its files are in a temporary folder.
func (a *app) withSamples(ctx context.Context, use func(ctx context.Context, g *gateway.Gateway) error) (err error) {
	dir, err := os.MkdirTemp("", "sallyport-try-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg, err := sampleSettings(dir)
	if err == nil {
		err = cli.Platform(cfg)
	}
	if err != nil {
		return err
	}
	alone := &cli.App{Env: noPlaces(a.Env), Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, LogLevel: a.LogLevel}
	g, err := alone.OpenGateway(cfg, alone.Logger(slog.LevelError), gateway.Options{NoPool: true, Purpose: "try"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return use(tool.WithClient(ctx, "sallyport try"), g)
}

// noPlaces returns an environment without the folders of the user, so that nothing is stored there.
func noPlaces(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name == "HOME" || name == "XDG_DATA_HOME" || name == "XDG_CACHE_HOME" {
			return "", false
		}
		return env(name)
	}
}

// sampleSettings returns settings in dir with all sample servers.
func sampleSettings(dir string) (*config.Config, error) {
	f := &settingsfile.File{Path: filepath.Join(dir, "upstreams.yaml")}
	for _, s := range samples() {
		e, err := sampleEntry(s)
		if err != nil {
			return nil, err
		}
		if err := f.Add(e); err != nil {
			return nil, err
		}
	}
	return config.Parse(f.Path, f.Data, nil)
}

// sampleEntry returns the upstream that a sample server is.
func sampleEntry(s sample) (settingsfile.Entry, error) {
	self, err := os.Executable()
	if err != nil {
		return settingsfile.Entry{}, fmt.Errorf("find sallyport: %w", err)
	}
	return settingsfile.Entry{Name: s.name, Description: s.description, Command: strings.ReplaceAll(self, "$", "$$"), Args: []string{sampleVerb, s.name}}, nil
}

// showSamples shows a search and a program with its result.
func (a *app) showSamples(ctx context.Context, g *gateway.Gateway) error {
	found, err := g.Searcher.Search(ctx, toolsearch.Request{Query: tryQuery, Limit: 3})
	if err != nil {
		return err
	}
	if err := a.Print("Two sample servers, shop and notes. A model finds their functions by a search:\n\n> " + tryQuery + "\n" + found.Text() +
		"\n\nIt calls them from a program, which runs in a sandbox:\n\n" + quote(tryProgram) + "\n\nIts result:\n"); err != nil {
		return err
	}
	result, err := a.run(ctx, g, execution.Program{Code: tryProgram, Language: "python"})
	if err != nil {
		return err
	}
	return a.printResult(result, fmt.Sprintf("\n\nThe model reads only the last line: the results of %d calls stayed in the sandbox.\n", result.Calls)+
		"Next: sallyport try FILE for a program of your own, sallyport init for your own servers.")
}

// quote puts a mark before each line.
func quote(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }
