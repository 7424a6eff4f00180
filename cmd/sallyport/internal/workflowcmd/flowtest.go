package workflowcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/flowgen"
	trials "sallyport/gateway/workflow/flowtest"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

func workflowTestCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [flags] [NAME...]",
		Short: "run the tests of workflows",
		Long: `Test runs the tests in NAME_test.yaml, next to the definitions, of the named
workflows or all. Tool calls return the results in the tests and reach no upstream;
code runs in a sandbox.`,
		Example:           "  sallyport workflow test\n  sallyport workflow test digest",
		RunE:              func(cmd *cobra.Command, args []string) error { return a.testWorkflows(cmd.Context(), args, asJSON) },
		ValidArgsFunction: a.completeWorkflows,
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) testWorkflows(ctx context.Context, names []string, asJSON bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	defs, faults := spec.LoadDir(cfg.Workflows.Path)
	files, more := trials.LoadDir(cfg.Workflows.Path)
	if err := errors.Join(append(faults, more...)...); err != nil && len(names) == 0 {
		return errors.Join(err, cli.Status(cli.ExitFailed))
	}
	if files, err = testsOf(files, names); err != nil {
		return err
	}
	return a.WithGateway(ctx, gateway.Options{NoPool: true, Purpose: "workflow test"}, func(ctx context.Context, g *gateway.Gateway) error {
		opts := trials.Options{Definitions: defs, Skills: g.Service()}
		if cli.Platform(cfg) == nil {
			opts.Programs = g.Service()
		}
		return a.reportTests(trials.Run(ctx, files, opts), asJSON)
	})
}

// testsOf returns the test files of the named workflows, or of all if none is named.
func testsOf(files []*trials.File, names []string) ([]*trials.File, error) {
	if len(names) == 0 {
		return files, nil
	}
	var found []*trials.File
	var known []string
	for _, f := range files {
		known = append(known, f.Workflow)
		if slices.Contains(names, f.Workflow) {
			found = append(found, f)
		}
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		e := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("no tests of workflow %.64q", name), Hint: "they are in NAME_test.yaml next to the definition"}
		if near := suggest.Of(name, known); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
		return nil, e
	}
	return found, nil
}

func (a *app) reportTests(results []trials.Result, asJSON bool) error {
	ok := !slices.ContainsFunc(results, func(r trials.Result) bool { return !r.OK() })
	var err error
	if asJSON {
		err = a.PrintJSON(struct {
			OK    bool            `json:"ok"`
			Tests []trials.Result `json:"tests"`
		}{ok, append([]trials.Result{}, results...)})
	} else if len(results) == 0 {
		a.Say("no workflow has tests; they are in NAME_test.yaml next to the definition")
	} else {
		err = trials.Report(a.Stdout, results)
	}
	if err == nil && !ok {
		err = cli.Status(cli.ExitFailed)
	}
	return err
}

func workflowRecordCommand(a *app) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "record [flags] RUN",
		Short: "create a test from a run",
		Long: `Record prints a test with the inputs of RUN, the results of its calls, and its
result as the expectation. Save it next to the definition as NAME_test.yaml.`,
		Example:           "  sallyport workflow record r-k3vq7m2yhx4d -o workflows/digest_test.yaml",
		Args:              cli.OneID,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.recordRun(cmd.Context(), args[0], out) },
		ValidArgsFunction: a.completeRuns(true),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write it to a new `FILE`")
	return cmd
}

func (a *app) recordRun(ctx context.Context, id, out string) error {
	return engine.Use(ctx, a.App, false, func(ctx context.Context, g *engine.Client) error {
		text, err := trials.Record(runEvents(ctx, g, id))
		if err != nil {
			return err
		}
		return a.writeOutput(text, out)
	})
}

// runEvents yields the events of a run, which it reads page by page.
func runEvents(ctx context.Context, g *engine.Client, id string) iter.Seq2[workflow.Event, error] {
	return func(yield func(workflow.Event, error) bool) {
		for after := 0; ; {
			var list httpapi.EventList
			if err := g.Get(ctx, fmt.Sprintf("%s/events?after=%d", runPath(id), after), &list); err != nil {
				yield(workflow.Event{}, err)
				return
			}
			for _, e := range list.Events {
				if !yield(e, nil) {
					return
				}
			}
			if list.Next == after {
				return
			}
			after = list.Next
		}
	}
}

// writeOutput prints a text, or writes it to a new file.
func (a *app) writeOutput(text []byte, path string) error {
	if path == "" {
		return cli.Write(a.Stdout, string(text))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err, Hint: "existing files are not overwritten"}
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func fromExecutionCommand(a *app) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "from-execution [flags] ID",
		Short: "create a draft of a workflow from an execution",
		Long: `From-execution prints a definition with the calls of a successful execution
("sallyport executions" lists them): a draft to review and edit. Values from the
result of an earlier call become expressions. Computations of the program between
its calls are not included.`,
		Example: "  sallyport workflow from-execution e-2f6qdmnhx3k4c -o workflows/report.yaml",
		Args:    cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithGateway(tool.WithOperator(cmd.Context(), cli.OperatorName), gateway.Options{NoPool: true, Purpose: "workflow draft"}, func(ctx context.Context, g *gateway.Gateway) error {
				done, err := g.History.Succeeded(ctx, args[0])
				if err != nil {
					return err
				}
				text, err := flowgen.From(done, g.Catalog.Tools())
				if err != nil {
					return err
				}
				return a.writeOutput(text, out)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write it to a new `FILE`")
	return cmd
}
