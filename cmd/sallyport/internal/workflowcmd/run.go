package workflowcmd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/tool"
)

// runFlags holds the arguments and flags of workflow run.
type runFlags struct {
	workflow string
	inputs   []string
	answers  []string
	detach   bool
	dryRun   bool
	asJSON   bool
}

func workflowRunCommand(a *app) *cobra.Command {
	var l runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] NAME|PATH",
		Short: "run a workflow, and print its outputs",
		Long: `Run starts a workflow, prints its progress on stderr, and prints its outputs as JSON.
A PATH is a file with a definition anywhere, such as ./digest.yaml; this process runs
it, also if a gateway runs.
In a terminal it asks for missing inputs, forms and approvals. Without a terminal it
exits where a person is needed, and prints how to continue; the run waits in the
meantime.

Ctrl-C cancels the run and waits for its end; a second Ctrl-C exits immediately.

Inputs are NAME=VALUE (JSON, where a text does not fit), NAME=@FILE (the text of
a file), or a JSON object for several, inline or as @FILE.

Exit status: 0 success; 1 it failed; 2 wrong usage, inputs or settings;
75 it waits for a person; 130 it was canceled.`,
		Example: `  sallyport workflow run digest --input folder=docs
  sallyport workflow run report --input @inputs.json --json | jq .outputs
  sallyport workflow run entry --answer ask.name=report --answer ask.size=m
  sallyport workflow run digest --dry-run
  sallyport workflow run ./drafts/digest.yaml --input folder=docs`,
		Args: cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			l.workflow = args[0]
			if l.detach && l.dryRun {
				return cli.Misuse(cmd, "--detach and --dry-run do not go together")
			}
			return a.runWorkflow(cmd.Context(), l)
		},
		ValidArgsFunction: a.completeWorkflows,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&l.inputs, "input", nil, "give the input `NAME=VALUE`, see above; can be repeated")
	flags.StringArrayVar(&l.answers, "answer", nil, "answer a form: `STEP.FIELD=VALUE`; can be repeated")
	flags.BoolVar(&l.detach, "detach", false, "print the run's id, and leave it to the gateway that runs")
	flags.BoolVar(&l.dryRun, "dry-run", false, "print what would be done, and which calls need approval, and do\nnothing")
	flags.BoolVar(&l.asJSON, "json", false, "print the run, or with --dry-run the plan, as one JSON object")
	return cmd
}

func (a *app) runWorkflow(ctx context.Context, l runFlags) error {
	given, err := parseAnswers(l.answers)
	if err != nil {
		return err
	}
	w := &watcher{app: a, given: given, asJSON: l.asJSON, key: rand.Text()}
	if isFile(l.workflow) {
		if w.file, err = spec.Load(l.workflow); err != nil {
			return errors.Join(err, cli.Status(cli.ExitUsage))
		}
		l.workflow = w.file.Name
	}
	return a.watchRun(ctx, w, func(ctx context.Context, g *engine.Client) (bool, error) { return w.start(ctx, g, l) })
}

// isFile reports whether the argument is the path of a definition, and no name: names have no dots and slashes.
func isFile(argument string) bool {
	return strings.ContainsRune(argument, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(argument))
}

// use calls do with the engine of the data directory, or with one that has the definition of a file.
func (w *watcher) use(ctx context.Context, do func(ctx context.Context, g *engine.Client) error) error {
	if w.file != nil {
		return engine.UseFile(ctx, w.App, w.file, do)
	}
	return engine.Use(ctx, w.App, true, do)
}

// errGatewayGone reports that the process with the engine has ended.
var errGatewayGone = errors.New("the gateway has ended")

// watchRun calls begin, which starts or continues a run, and watches the run to its end. If the gateway ends in the meantime,
// another gateway or an engine in this process continues the run.
func (a *app) watchRun(ctx context.Context, w *watcher, begin func(ctx context.Context, g *engine.Client) (watch bool, err error)) error {
	second := make(chan os.Signal, 2)
	signal.Notify(second, cli.EndSignals()...)
	defer signal.Stop(second)
	w.signals = second
	for try := 0; ; try++ {
		err := w.use(context.WithoutCancel(ctx), func(_ context.Context, g *engine.Client) error {
			if w.run.ID == "" {
				watch, err := begin(ctx, g)
				if err != nil || !watch {
					return err
				}
			} else if err := w.resume(ctx, g); err != nil {
				return err
			}
			return w.watch(ctx, g)
		})
		if !errors.Is(err, errGatewayGone) || try == 3 {
			return err
		}
		a.Say("the gateway has ended; continuing run " + w.run.ID)
	}
}

// start starts the run, or prints the plan for --dry-run. It reports whether to watch the run.
func (w *watcher) start(ctx context.Context, g *engine.Client, l runFlags) (watch bool, err error) {
	if l.detach && g.InProcess {
		return false, &tool.Error{Kind: tool.Invalid, Message: "no running gateway to continue the run", Hint: "start one: sallyport serve --http 127.0.0.1:8080; or leave --detach out"}
	}
	inputs, err := w.inputs(ctx, g, l)
	if err != nil {
		return false, err
	}
	path := "/workflows/" + url.PathEscape(l.workflow)
	if l.dryRun {
		return false, w.plan(ctx, g, path, inputs)
	}
	if err := g.Post(ctx, path+"/runs", httpapi.Launch{Inputs: inputs, Key: w.key}, &w.run); err != nil {
		return false, err
	}
	if l.detach {
		if l.asJSON {
			return false, w.PrintJSON(w.run)
		}
		return false, w.Print(w.run.ID)
	}
	return true, nil
}

// plan prints what a run would do.
func (w *watcher) plan(ctx context.Context, g *engine.Client, path string, inputs json.RawMessage) error {
	var planned lint.Planned
	if err := g.Post(ctx, path+"/plan", httpapi.PlanRequest{Inputs: inputs}, &planned); err != nil {
		return err
	}
	if w.asJSON {
		return w.PrintJSON(planned)
	}
	return w.Print(planned.Text())
}

// resume has another gateway continue the run.
func (w *watcher) resume(ctx context.Context, g *engine.Client) error {
	if err := g.Get(ctx, runPath(w.run.ID), &w.run); err != nil || w.run.Status.Over() {
		return err
	}
	if !g.InProcess {
		return nil // a gateway resumes runs by itself
	}
	return g.Post(ctx, runPath(w.run.ID)+"/resume", httpapi.Nothing{}, &w.run)
}

func runPath(id string) string { return "/runs/" + url.PathEscape(id) }

// outcome prints the result of a run and returns the error for its exit status.
func (w *watcher) outcome() error {
	if w.asJSON {
		if err := w.PrintJSON(w.run); err != nil {
			return err
		}
	}
	switch w.run.Status {
	case workflow.OK:
		if w.asJSON || len(w.run.Outputs) == 0 || string(w.run.Outputs) == "{}" {
			return nil
		}
		return w.PrintJSON(w.run.Outputs)
	case workflow.Canceled:
		w.Say("run " + w.run.ID + " was canceled")
		return cli.Status(cli.ExitInterrupted)
	case workflow.Failed:
		w.ReportToolError(failure(w.run))
		return cli.Status(cli.ExitFailed)
	case workflow.Queued, workflow.Running, workflow.Waiting:
	}
	return cli.Status(cli.ExitSuspended)
}

// failure returns the error of a failed run with a hint.
func failure(run workflow.Run) *tool.Error {
	fault := run.Error
	if fault == nil {
		fault = &workflow.Fault{Kind: tool.Internal, Message: "unknown error"}
	}
	where := ""
	if fault.Step != "" {
		where = " at " + fault.Step
	}
	if fault.Line > 0 {
		where += fmt.Sprint(" (line ", fault.Line, ")")
	}
	e := &tool.Error{Kind: fault.Kind, Message: fmt.Sprintf("run %s failed%s: %s", run.ID, where, fault.Message), Hint: fault.Hint}
	if e.Hint == "" {
		e.Hint = "sallyport workflow log " + run.ID + " shows the steps; sallyport workflow resume " + run.ID + " continues from there"
	}
	return e
}
