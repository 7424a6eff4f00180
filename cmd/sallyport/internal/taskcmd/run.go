// Package taskcmd has the verb run, which works on a task in words.
package taskcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/skills"
	"sallyport/gateway/task"
	"sallyport/gateway/workflow/flowgen"
	"sallyport/internal/atomicfile"
	"sallyport/internal/tool"
)

// app has the verb.
type app struct{ *cli.App }

// options are the flags of run.
type options struct {
	task.Request
	args          []string
	asJSON, quiet bool
	skill, flow   string
	resume        string
	// kept says that the records outlive the process.
	kept bool
}

// RunCommand returns the verb run.
func RunCommand(shared *cli.App) *cobra.Command {
	a, o := &app{shared}, options{}
	cmd := &cobra.Command{
		Use:   "run [flags] TASK",
		Short: "do a task in words: search tools, write a program, run it",
		Long: `Run does a task in words. The model of the settings (models, tasks) searches tools
and writes a program, which runs in a sandbox as any other; it repairs the program
from its errors until it has the answer. Without a model, rules choose a tool and
find its arguments in the task: quoted texts, numbers, dates, paths, addresses. What
the rules are not sure of they ask or refuse.

Progress goes to stderr, the answer to stdout. --plan prints the first program and
does not run it.

Exit status: 0 done; 1 it failed, was refused, or needs values; 2 wrong usage or
settings; 75 a call needs approval; 125 a limit was reached; 130 interrupted.`,
		Example: `  sallyport run "How many orders did Borg place?"
  sallyport run --plan --no-model 'list the files of "/tmp"'
  sallyport run --only github --arg owner=octo --arg repo=hello "list the open issues"
  sallyport run --save-skill report "the sales of each month as a table"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && o.resume == "":
				return cli.Misuse(cmd, "run needs a TASK in words")
			case len(args) > 0 && o.resume != "":
				return cli.Misuse(cmd, "--resume goes on with a task, and takes no other")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Task = strings.Join(args, " ")
			return a.run(cmd.Context(), cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Model, "model", "", "use the model `NAME` of the settings")
	flags.BoolVar(&o.NoModel, "no-model", false, "use rules, no model")
	flags.BoolVar(&o.Plan, "plan", false, "print the first program and do not run it")
	flags.StringSliceVar(&o.Only, "only", nil, "let programs call only these `UPSTREAMS`")
	flags.StringArrayVar(&o.args, "arg", nil, "a value that the task needs, as `NAME=VALUE`")
	flags.StringVar(&o.skill, "save-skill", "", "save the program that worked as the skill `NAME`")
	flags.StringVar(&o.flow, "save-workflow", "", "write a workflow of its calls to `FILE`")
	flags.StringVar(&o.Workspace, "workspace", "", "let /workspace be the workspace `NAME`; without it \"default\"")
	flags.StringVar(&o.Environment, "environment", "", "run programs in the environment `NAME` of the settings")
	flags.StringVar(&o.resume, "resume", "", "go on with the task `ID` at its last program")
	flags.BoolVar(&o.asJSON, "json", false, "print the record of the task as one JSON object")
	flags.BoolVar(&o.quiet, "quiet", false, "print no progress")
	a.SandboxFlag(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, cmd *cobra.Command, o options) (err error) {
	if o.Args, err = parseArgs(cmd, o.args); err != nil {
		return err
	}
	cfg, err := a.Load()
	if err == nil {
		err = cli.Platform(cfg)
	}
	if err != nil {
		return err
	}
	if o.resume != "" {
		if done, ok, err := a.resumeThere(ctx, o); ok || err != nil {
			if err != nil {
				return err
			}
			o.kept = true
			return a.report(done, o)
		}
	}
	log := a.Logger(slog.LevelError)
	records, err := a.OpenRecords(cfg, a.Logger(slog.LevelError+1), true)
	if err != nil {
		return err
	}
	if o.kept = records != nil; o.kept {
		defer func() { err = errors.Join(err, records.Close()) }()
	}
	opts := gateway.Options{NoPool: true, Purpose: "run", Records: records}
	if opts.DebugLog, err = a.RunscLog(); err != nil {
		return err
	}
	return a.WithGateway(ctx, opts, func(ctx context.Context, g *gateway.Gateway) (err error) {
		tasks, err := a.OpenTasks(g, cfg, records, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tasks.Close()) }()
		defer a.OpenControl(log, httpapi.New(g.Service(), &httpapi.Options{Tasks: tasks}))() // so that its approvals can be answered from another terminal
		if err := a.WaitConnected(ctx, g); err != nil {
			return err
		}
		return a.work(ctx, g, tasks, o)
	})
}

// work works on the task, and asks on the terminal for what it needs.
func (a *app) work(ctx context.Context, g *gateway.Gateway, tasks *task.Tasks, o options) error {
	done, err := a.once(ctx, tasks, o)
	for err == nil && done.Status == string(task.Asked) && !o.asJSON && cli.IsTerminal(a.Stdin) {
		if o.Args, err = a.ask(done, o.Args); err == nil {
			done, err = a.once(ctx, tasks, o)
		}
	}
	if err != nil {
		return err
	}
	if done.Status == string(task.Held) && !o.kept {
		done.Notes = append(done.Notes, "another process has the records, so this task cannot be resumed: start it in the gateway that runs, with POST /tasks or run_task")
	}
	if done.Status == string(task.Done) {
		if err := a.save(ctx, g, done, o); err != nil {
			return err
		}
	}
	return a.report(done, o)
}

// report prints a task that is over, and returns the exit status.
func (a *app) report(done httpapi.TaskState, o options) error {
	if err := a.show(done, o); err != nil {
		return err
	}
	return statusOf(done)
}

func (a *app) once(ctx context.Context, tasks *task.Tasks, o options) (httpapi.TaskState, error) {
	p := &progress{app: a, off: o.quiet}
	seen := func(t task.Task) { p.seen(httpapi.StateOf(t)) }
	if o.resume != "" {
		done, err := tasks.Resume(ctx, o.resume, nil, seen)
		return httpapi.StateOf(done), err
	}
	done, err := tasks.Run(ctx, o.Request, seen)
	return httpapi.StateOf(done), err
}

// parseArgs reads NAME=VALUE. A value that is JSON counts as that.
func parseArgs(cmd *cobra.Command, pairs []string) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, cli.Misuse(cmd, "--arg wants NAME=VALUE, not %s", pair)
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if json.Valid([]byte(value)) {
			data = []byte(value)
		}
		all[name] = data
	}
	return all, nil
}

// ask asks the questions of a task on the terminal.
func (a *app) ask(t httpapi.TaskState, args map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	in := bufio.NewReader(a.Stdin)
	for _, q := range t.Questions {
		fmt.Fprintln(a.Stderr, cli.Clean(q.Text))
		for i, choice := range q.Choices {
			fmt.Fprintf(a.Stderr, "  %d. %s\n", i+1, cli.Clean(choice))
		}
		fmt.Fprintf(a.Stderr, "%s: ", cli.Clean(q.Name))
		line, err := in.ReadString('\n')
		line = strings.TrimSpace(line)
		if err != nil || line == "" {
			return nil, &tool.Error{Kind: tool.Canceled, Message: "there is no answer for " + q.Name, Hint: "give it with --arg " + q.Name + "=VALUE"}
		}
		for i, choice := range q.Choices {
			if line == fmt.Sprint(i+1) {
				line = choice
			}
		}
		if args[q.Name], err = json.Marshal(line); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// statusOf maps the state of a task to the exit status of the process.
func statusOf(t httpapi.TaskState) error {
	switch task.Status(t.Status) {
	case task.Done, task.Planned:
		return nil
	case task.Held:
		return cli.Status(cli.ExitSuspended)
	case task.Canceled:
		return cli.Status(cli.ExitInterrupted)
	}
	switch {
	case t.Kind == string(tool.Limit) || t.Kind == string(tool.Timeout):
		return cli.Status(cli.ExitUnable)
	}
	return cli.Status(cli.ExitFailed)
}

// show prints the answer or the program to stdout, and all else to stderr.
func (a *app) show(t httpapi.TaskState, o options) error {
	if o.asJSON {
		return a.PrintJSON(t)
	}
	for _, note := range t.Notes {
		a.Say("note: " + note)
	}
	switch task.Status(t.Status) {
	case task.Done:
		return a.Print(t.Answer)
	case task.Planned:
		return a.Print(strings.TrimRight(t.Program, "\n"))
	case task.Asked:
		for _, q := range t.Questions {
			text := q.Text + " Give --arg " + q.Name + "=VALUE"
			if len(q.Choices) > 0 {
				text += ", one of " + strings.Join(q.Choices, ", ")
			}
			a.Say(text)
		}
	case task.Held:
		if !o.kept {
			return nil
		}
		a.Say("a call waits for approval: answer it (sallyport approvals), then sallyport run --resume " + t.ID)
	default:
		a.Say(t.Error)
	}
	if t.Program != "" && t.Status != string(task.Failed) && t.Status != string(task.Held) {
		fmt.Fprintln(a.Stderr, "The program would be:\n\n"+cli.Clean(t.Program))
	}
	return nil
}

// save saves what worked as a skill or a workflow.
func (a *app) save(ctx context.Context, g *gateway.Gateway, t httpapi.TaskState, o options) error {
	if o.skill != "" {
		text, err := g.Skills.SaveSkill(ctx, skills.SkillDraft{Name: o.skill, From: t.Execution, Description: cli.OneLine(t.Task, 200)})
		if err != nil {
			return err
		}
		a.Say(cli.OneLine(text, 300))
	}
	if o.flow == "" {
		return nil
	}
	done, err := g.History.Succeeded(ctx, t.Execution)
	if err != nil {
		return err
	}
	text, err := flowgen.From(done, g.Catalog.Tools())
	if err != nil {
		return err
	}
	if filepath.Ext(o.flow) == "" {
		o.flow += ".yaml"
	}
	if _, err := os.Stat(o.flow); err == nil {
		return &tool.Error{Kind: tool.Invalid, Message: o.flow + " exists", Hint: "name another file"}
	}
	a.Say("a workflow was written to " + o.flow)
	return atomicfile.Replace(o.flow, text, 0o644)
}

// progress prints the turns of a task as they end.
type progress struct {
	*app
	off   bool
	shown int
}

func (p *progress) seen(t httpapi.TaskState) {
	if p.off {
		return
	}
	for _, turn := range t.Turns[min(p.shown, len(t.Turns)):] {
		fmt.Fprintln(p.Stderr, cli.Clean(line(turn)))
		if turn.Kind == task.KindProgram {
			fmt.Fprintln(p.Stderr, cli.Clean("    "+strings.ReplaceAll(strings.TrimRight(turn.Text, "\n"), "\n", "\n    ")))
			for _, c := range turn.Calls {
				fmt.Fprintln(p.Stderr, cli.Clean("  call "+c))
			}
		}
	}
	p.shown = len(t.Turns)
}

// line is a turn in one line.
func line(t httpapi.TaskTurn) string {
	head := t.Kind
	switch t.Kind {
	case task.KindSearch:
		head += " " + cli.OneLine(t.Text, 60) + ": " + cli.Count(len(t.Found), "tool")
		if n := min(len(t.Found), 4); n > 0 {
			head += ": " + strings.Join(slices.Clone(t.Found[:n]), ", ")
		}
	case task.KindProgram:
		head += " " + t.Execution + " " + t.Status
	}
	if t.Error != "" {
		head += ": " + cli.OneLine(strings.TrimPrefix(t.Error, t.Status+": "), 200)
	}
	head += fmt.Sprintf(" (%s", (time.Duration(t.DurationMS) * time.Millisecond).Round(10*time.Millisecond))
	if n := t.Tokens.Input + t.Tokens.Output; n > 0 {
		head += fmt.Sprintf(", %d tokens", n)
	}
	if t.Price > 0 {
		head += fmt.Sprintf(", %.4g", t.Price)
	}
	return head + ")"
}
