package taskcmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/task"
	"sallyport/internal/models"
	"sallyport/internal/tool"
)

// TasksCommand returns the verb tasks.
func TasksCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tasks [COMMAND] [flags]",
		Short: "show the tasks in words that were done last",
		Long: `Tasks lists the tasks in words that were done last, of all clients, the newest
first: those of the gateways that run on the data directory, and the stored ones.`,
		Example: "  sallyport tasks\n  sallyport tasks show t-2f6qdmnhx3k4",
		Args:    cli.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 200 {
				return cli.Misuse(cmd, "--limit must be 1 to 200")
			}
			return a.tasks(cmd.Context(), limit, asJSON)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "show `N` of them, at most 200")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, cli.OneObject)
	list := &cobra.Command{Use: "list [flags]", Short: "list the tasks that were done last, as tasks alone does", Args: cli.NoArguments, RunE: cmd.RunE}
	list.Flags().IntVar(&limit, "limit", 20, cmd.Flag("limit").Usage)
	cmd.AddCommand(list, &cobra.Command{
		Use:   "show [flags] ID",
		Short: "show one task: its turns with their tokens and price, and its answer",
		Args:  cli.OneID,
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showTask(cmd.Context(), args[0], asJSON) },
	})
	return cmd
}

// eachGateway calls use with every gateway that works on tasks, until it returns an error.
func eachGateway(c *cli.Gateways, use func(gate *http.Client) error) error {
	for _, gate := range c.All {
		err := use(gate)
		if missing, ok := errors.AsType[*tool.Error](err); ok && missing.Kind == tool.NotFound {
			continue // it works on no tasks
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) tasks(ctx context.Context, limit int, asJSON bool) error {
	list := httpapi.TaskList{Tasks: []httpapi.TaskState{}}
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return eachGateway(c, func(gate *http.Client) error {
			var more httpapi.TaskList
			err := cli.DoJSON(ctx, gate, http.MethodGet, fmt.Sprint("/tasks?limit=", limit), nil, &more)
			list.Tasks = append(list.Tasks, more.Tasks...)
			return err
		})
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(list.Tasks, func(x, y httpapi.TaskState) int { return y.Begun.Compare(x.Begun) })
	list.Tasks = list.Tasks[:min(limit, len(list.Tasks))]
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list.Tasks) == 0 {
		a.Say("no task was done yet")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tAGE\tWHO\tMODEL\tSTATUS\tTURNS\tTOKENS\tPRICE\tTASK")
	for _, t := range list.Tasks {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%.4g\t%s\n", cli.Cell(t.ID, 20), cli.Age(t.Begun), cli.Cell(t.Principal, 30), cli.Cell(t.Model, 20),
			cli.Cell(t.Status, 10), t.TurnCount, t.Tokens.Input+t.Tokens.Output, t.Price, cli.Cell(t.Task, 50))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

func (a *app) showTask(ctx context.Context, id string, asJSON bool) error {
	var s httpapi.TaskState
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		_, err := find(ctx, c, id, &s)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(s)
	}
	return a.Print(textOf(taskOf(s)))
}

// find returns the gateway that has a task, and its state.
func find(ctx context.Context, c *cli.Gateways, id string, into *httpapi.TaskState) (found *http.Client, err error) {
	err = eachGateway(c, func(gate *http.Client) error {
		if found != nil {
			return nil
		}
		err := cli.DoJSON(ctx, gate, http.MethodGet, "/tasks/"+url.PathEscape(id), nil, into)
		if err == nil {
			found = gate
		}
		return err
	})
	if err == nil && found == nil {
		err = &tool.Error{Kind: tool.NotFound, Message: "there is no task " + cli.Cell(id, 60), Hint: "list the last ones: sallyport tasks"}
	}
	return found, err
}

// textOf is a task for people.
func textOf(t task.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s  by %s  %s\n%s\n", t.ID, cli.Cell(t.Model, 40), t.Status, cli.Cell(t.Principal, 60), t.Begun.Local().Format(time.DateTime), cli.OneLine(t.Task, 400))
	for i, turn := range t.Turns {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, line(turn))
		for _, c := range turn.Calls {
			fmt.Fprintf(&b, "       call %s\n", c)
		}
	}
	fmt.Fprintf(&b, "%s, %d tokens read (%d from a cache), %d written", cli.Count(len(t.Turns), "turn"), t.Tokens.Input, t.Tokens.Cached, t.Tokens.Output)
	if t.Price > 0 {
		fmt.Fprintf(&b, ", price %.4g", t.Price)
	}
	b.WriteString("\n")
	for _, note := range t.Notes {
		b.WriteString("note: " + note + "\n")
	}
	if t.Error != "" {
		b.WriteString("error: " + t.Error + "\n")
	}
	if t.Program != "" {
		b.WriteString("\n" + strings.TrimRight(t.Program, "\n") + "\n")
	}
	if t.Answer != "" {
		b.WriteString("\n" + t.Answer + "\n")
	}
	return b.String()
}

// taskOf returns the record of a task that the API has answered.
func taskOf(s httpapi.TaskState) task.Task {
	t := task.Task{
		ID: s.ID, Principal: s.Principal, Client: s.Client, Task: s.Task, Only: s.Only, Model: s.Model, Status: task.Status(s.Status), Begun: s.Begun, Ended: s.Ended, Answer: s.Answer,
		Program: s.Program, Language: s.Language, Execution: s.Execution, Error: s.Error, Kind: s.Kind, Notes: s.Notes, Tokens: models.Usage(s.Tokens), Price: s.Price,
	}
	for _, q := range s.Questions {
		t.Questions = append(t.Questions, task.Question(q))
	}
	for _, one := range s.Turns {
		t.Turns = append(t.Turns, task.Turn{
			Kind: one.Kind, Text: one.Text, Language: one.Language, Begun: one.Begun, Duration: time.Duration(one.DurationMS) * time.Millisecond, Waited: time.Duration(one.WaitedMS) * time.Millisecond,
			Model: one.Model, Tokens: models.Usage(one.Tokens), Price: one.Price, Execution: one.Execution, Status: one.Status, Calls: one.Calls, Found: one.Found, Shown: one.Shown, Error: one.Error,
		})
	}
	return t
}

// resumeThere resumes a task in the gateway that runs and has it. ok is false if none has.
func (a *app) resumeThere(ctx context.Context, o options) (done task.Task, ok bool, err error) {
	if a.DataDir() == "" {
		return done, false, nil
	}
	err = a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error {
		var s httpapi.TaskState
		gate, err := find(ctx, c, o.resume, &s)
		if missing, none := errors.AsType[*tool.Error](err); none && missing.Kind == tool.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		p := &progress{app: a, off: o.quiet, shown: s.TurnCount}
		ok = true
		path := "/tasks/" + url.PathEscape(o.resume)
		if err = cli.DoJSON(ctx, gate, http.MethodPost, path+"/resume", struct{}{}, &s); err != nil {
			return err
		}
		for s.Status == string(task.Running) {
			if err = cli.DoJSON(ctx, gate, http.MethodGet, path+"?wait=10", nil, &s); err != nil {
				return err
			}
			p.seen(taskOf(s))
		}
		done = taskOf(s)
		return nil
	})
	return done, ok, err
}
