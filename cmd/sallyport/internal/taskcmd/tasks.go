package taskcmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/task"
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

func (a *app) tasks(ctx context.Context, limit int, asJSON bool) error {
	list := httpapi.TaskList{Tasks: []httpapi.TaskState{}}
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error {
		return cli.GetFromAll(ctx, c, fmt.Sprint("/tasks?limit=", limit), func(more httpapi.TaskList) { list.Tasks = append(list.Tasks, more.Tasks...) })
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
	var t httpapi.TaskState
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) (err error) {
		t, err = find(ctx, c, id)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(t)
	}
	return a.Print(textOf(t))
}

// find returns the task from the gateway that has it.
func find(ctx context.Context, c *cli.Gateways, id string) (t httpapi.TaskState, err error) {
	err = c.Find(ctx, taskPath(id), nil, &t)
	if missing, ok := errors.AsType[*tool.Error](err); ok && missing.Kind == tool.NotFound || len(c.All) == 0 {
		err = &tool.Error{Kind: tool.NotFound, Message: "there is no task " + cli.Cell(id, 60), Hint: "list the last ones: sallyport tasks"}
	}
	return t, err
}

func taskPath(id string) string { return "/tasks/" + url.PathEscape(id) }

// textOf is a task for people.
func textOf(t httpapi.TaskState) string {
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

// resumeThere resumes a task in the gateway that runs and has it. ok is false if none has.
func (a *app) resumeThere(ctx context.Context, o options) (t httpapi.TaskState, ok bool, err error) {
	if a.DataDir() == "" {
		return t, false, nil
	}
	err = a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) (err error) {
		t, err = find(ctx, c, o.resume)
		if missing, none := errors.AsType[*tool.Error](err); none && missing.Kind == tool.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		p := &progress{app: a, off: o.quiet, shown: t.TurnCount}
		t = httpapi.TaskState{}
		if err := c.Find(ctx, taskPath(o.resume)+"/resume", struct{}{}, &t); err != nil {
			return err
		}
		for t.Status == string(task.Running) {
			t = httpapi.TaskState{}
			if err := c.Find(ctx, taskPath(o.resume)+"?wait=10", nil, &t); err != nil {
				return err
			}
			p.seen(t)
		}
		return nil
	})
	return t, ok, err
}
