package workflowcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/internal/tool"
)

func workflowCancelCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel [flags] RUN",
		Short: "stop a run",
		Long: `Cancel stops a run: its running steps are ended, and the steps under finally are
executed.`,
		Example: "  sallyport workflow cancel r-k3vq7m2yhx4d",
		Args:    cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return engine.Use(cmd.Context(), a.App, true, func(ctx context.Context, g *engine.Client) error {
				var run workflow.Run
				if err := g.Post(ctx, runPath(args[0])+"/cancel", httpapi.Nothing{}, &run); err != nil {
					return err
				}
				if !run.Status.Over() {
					_ = g.Get(ctx, runPath(run.ID)+"?wait=30", &run) // a timeout is reported below
				}
				if run.Status.Over() {
					return a.Print("run " + run.ID + " is over: " + string(run.Status))
				}
				return a.Print("run " + run.ID + " is being canceled")
			})
		},
		ValidArgsFunction: a.completeRuns(false),
	}
}

func workflowResumeCommand(a *app) *cobra.Command {
	var asJSON bool
	var given []string
	cmd := &cobra.Command{
		Use:   "resume [flags] RUN",
		Short: "continue a run that failed, was canceled, or was left",
		Long: `Resume continues a run: successful steps are not repeated, failed ones are. It prints,
asks and exits as run does.`,
		Example: "  sallyport workflow resume r-k3vq7m2yhx4d",
		Args:    cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.continueRun(cmd.Context(), args[0], "/resume", httpapi.Nothing{}, given, asJSON)
		},
		ValidArgsFunction: a.completeRuns(true),
	}
	cmd.Flags().StringArrayVar(&given, "answer", nil, "answer a form: `STEP.FIELD=VALUE`; can be repeated")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func workflowReplayCommand(a *app) *cobra.Command {
	var asJSON bool
	var given []string
	cmd := &cobra.Command{
		Use:   "replay [flags] RUN STEP",
		Short: "start a new run from a step of an earlier run",
		Long: `Replay starts a new run of the same workflow with the same inputs. The steps before
STEP are taken over from RUN; STEP and all after it are executed again.`,
		Example: "  sallyport workflow replay r-k3vq7m2yhx4d each",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Misuse(cmd, "replay takes a RUN and a STEP")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.continueRun(cmd.Context(), args[0], "/replay", httpapi.Replay{Step: args[1]}, given, asJSON)
		},
		ValidArgsFunction: a.completeRuns(true),
	}
	cmd.Flags().StringArrayVar(&given, "answer", nil, "answer a form: `STEP.FIELD=VALUE`; can be repeated")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// continueRun sends a request that continues a run, and watches the run.
func (a *app) continueRun(ctx context.Context, id, verb string, body any, given []string, asJSON bool) error {
	answers, err := parseAnswers(given)
	if err != nil {
		return err
	}
	w := &watcher{app: a, given: answers, asJSON: asJSON}
	return a.watchRun(ctx, w, func(ctx context.Context, g *engine.Client) (bool, error) {
		if verb != "/replay" {
			w.after = a.eventCount(ctx, g, id)
		}
		return true, g.Post(ctx, runPath(id)+verb, body, &w.run)
	})
}

// eventCount returns how many events a run has by now, so that they are not printed again.
func (a *app) eventCount(ctx context.Context, g *engine.Client, id string) (n int) {
	for {
		var list httpapi.EventList
		if g.Get(ctx, fmt.Sprintf("%s/events?values=none&after=%d", runPath(id), n), &list) != nil || len(list.Events) == 0 {
			return n
		}
		n = list.Next
	}
}

func workflowAnswerCommand(a *app) *cobra.Command {
	var asJSON, leave bool
	cmd := &cobra.Command{
		Use:   "answer [flags] RUN [STEP] [FIELD=VALUE...]",
		Short: "answer a form that a run waits for",
		Long: `Answer submits values to a form, some or all; valid ones are saved. Without values it
asks in the terminal. STEP may be omitted if one step waits. Then the run continues,
and is watched as with run, unless --leave is given and a gateway has it.`,
		Example: "  sallyport workflow answer r-k3vq7m2yhx4d ask name=report size=m",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || !isRunID(args[0]) {
				return cli.Misuse(cmd, "answer takes a RUN first")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.answerRun(cmd.Context(), args[0], args[1:], leave, asJSON)
		},
		ValidArgsFunction: a.completeRuns(false),
	}
	cmd.Flags().BoolVar(&leave, "leave", false, "do not watch the run")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) answerRun(ctx context.Context, id string, args []string, leave, asJSON bool) error {
	step := ""
	if len(args) > 0 && !strings.Contains(args[0], "=") {
		step, args = args[0], args[1:]
	}
	values, err := parseValues(args)
	if err != nil {
		return err
	}
	w := &watcher{app: a, asJSON: asJSON}
	return a.watchRun(ctx, w, func(ctx context.Context, g *engine.Client) (bool, error) {
		w.after = a.eventCount(ctx, g, id)
		if err := g.Get(ctx, runPath(id), &w.run); err != nil {
			return false, err
		}
		if g.InProcess && !w.run.Status.Over() {
			if err := g.Post(ctx, runPath(id)+"/resume", httpapi.Nothing{}, &w.run); err != nil {
				return false, err
			}
			if err := g.Get(ctx, runPath(id)+"?wait=30", &w.run); err != nil { // until it waits again
				return false, err
			}
		}
		if len(values) > 0 {
			if err := w.answerOnce(ctx, g, step, values); err != nil {
				return false, err
			}
		}
		return !leave || g.InProcess, nil
	})
}

// answerOnce submits an answer; invalid values are an error.
func (w *watcher) answerOnce(ctx context.Context, g *engine.Client, step string, values map[string]any) error {
	problems, err := (&remoteForm{gate: g, run: &w.run, step: step}).Answer(ctx, values)
	if err != nil || len(problems) == 0 {
		return err
	}
	return &tool.Error{Kind: tool.Invalid, Message: problems[0].Message, Hint: problems[0].Hint}
}

// completeRuns completes the ids of runs that are over, or that are not.
func (a *app) completeRuns(over ...bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		if len(args) == 0 {
			_ = engine.Use(cmd.Context(), a.App, false, func(ctx context.Context, g *engine.Client) error { // an error completes nothing
				var list httpapi.RunList
				err := g.Get(ctx, "/runs?limit=20", &list)
				for _, run := range list.Runs {
					if slices.Contains(over, run.Status.Over()) {
						ids = append(ids, run.ID+"\t"+run.Workflow+" "+string(run.Status))
					}
				}
				return err
			})
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
