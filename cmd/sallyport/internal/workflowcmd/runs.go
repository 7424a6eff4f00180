package workflowcmd

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/runlog"
)

func workflowRunsCommand(a *app) *cobra.Command {
	var limit int
	var of, status string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "runs [flags]",
		Short:   "list the last runs",
		Example: "  sallyport workflow runs --status waiting",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return cli.Misuse(cmd, "--limit must be 1 to 1000")
			}
			query := url.Values{"limit": {fmt.Sprint(limit)}}
			for name, value := range map[string]string{"workflow": of, "status": status} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return a.listRuns(cmd.Context(), query, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&limit, "limit", 20, "show `N` of them, at most 1000")
	flags.StringVar(&of, "workflow", "", "show those of the workflow `NAME`")
	flags.StringVar(&status, "status", "", "show those with this `STATUS`: queued, running, waiting, ok, failed\nor canceled")
	cli.JSONFlag(cmd, &asJSON)
	cli.CompleteFlag(cmd, "status", "queued", "running", "waiting", "ok", "failed", "canceled")
	return cmd
}

func (a *app) listRuns(ctx context.Context, query url.Values, asJSON bool) error {
	var list httpapi.RunList
	err := engine.Use(ctx, a.App, false, func(ctx context.Context, g *engine.Client) error { return g.Get(ctx, "/runs?"+query.Encode(), &list) })
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list.Runs) == 0 {
		a.Say("no matching runs")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tWORKFLOW\tSTATUS\tAGE\tTOOK\tBY\tNOTE")
	for _, run := range list.Runs {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(run.ID, 40), cli.Cell(run.Workflow, 64), cli.Cell(string(run.Status), 12), cli.Age(run.Started), cli.Cell(durationText(run), 12),
			cli.Cell(strings.TrimSpace(run.Trigger+" "+run.Principal), 40), cli.Cell(note(run), 80))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

// durationText returns how long a run took, "" while it continues.
func durationText(run workflow.Run) string {
	if run.Ended.IsZero() {
		return ""
	}
	return formatDuration(run.Ended.Sub(run.Started))
}

// note returns the remark on a run in a list.
func note(run workflow.Run) string {
	if run.Error != nil {
		return strings.TrimSpace(run.Error.Step + " " + string(run.Error.Kind) + ": " + run.Error.Message)
	}
	var parts []string
	for _, p := range run.Waiting {
		parts = append(parts, p.Step+" waits for "+waitsFor(p.For))
	}
	if run.Of != "" {
		parts = append(parts, "replays "+run.Of)
	}
	return strings.Join(parts, ", ")
}

func workflowLogCommand(a *app) *cobra.Command {
	var follow, asJSON bool
	var after, limit int
	cmd := &cobra.Command{
		Use:   "log [flags] RUN",
		Short: "show the timeline of a run",
		Long: `Log shows the timeline of a run: when each step began, how long it took (a line in the
bar; dots are waiting), its outcome and the number of attempts. Of a loop with more
than 10 passes it shows the first, the last, and those that failed.

With --after or --limit it lists a page of events instead.`,
		Example: `  sallyport workflow log r-k3vq7m2yhx4d
  sallyport workflow log r-k3vq7m2yhx4d --after 5000 --limit 100
  sallyport workflow log r-k3vq7m2yhx4d --json | jq 'select(.kind == "ended")'`,
		Args: cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("after") || cmd.Flags().Changed("limit") {
				if after < 0 || limit < 1 || limit > 1000 || follow {
					return cli.Misuse(cmd, "--after must be 0 or more, --limit 1 to 1000, and neither goes with --follow")
				}
				return a.logPage(cmd.Context(), args[0], after, limit, asJSON)
			}
			return a.workflowLog(cmd.Context(), args[0], follow, asJSON)
		},
		ValidArgsFunction: a.completeRuns(true, false),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "update it on each event, until the run is over")
	cli.JSONLinesFlag(cmd, &asJSON)
	cmd.Flags().IntVar(&after, "after", 0, "list the events after the first `N`")
	cmd.Flags().IntVar(&limit, "limit", 100, "list `N` events, at most 1000")
	return cmd
}

// logPage lists some events of a run.
func (a *app) logPage(ctx context.Context, id string, after, limit int, asJSON bool) error {
	values := "none"
	if asJSON {
		values = "all"
	}
	var list httpapi.EventList
	err := engine.Use(ctx, a.App, false, func(ctx context.Context, g *engine.Client) error {
		return g.Get(ctx, fmt.Sprintf("%s/events?after=%d&limit=%d&values=%s", runPath(id), after, limit, values), &list)
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range list.Events {
		if asJSON {
			if err := a.PrintLine(e); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", e.N, e.Time.Local().Format(time.DateTime), cli.Cell(string(e.Kind), 20), cli.Cell(e.Path, 100), cli.Cell(strings.TrimSpace(e.Outcome+string(e.Status)+faultText(e.Error)), 300))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(list.Events) == limit {
		a.Say(fmt.Sprintf("the next: sallyport workflow log %s --after %d", id, list.Next))
	}
	return a.Print(b.String())
}

func (a *app) workflowLog(ctx context.Context, id string, follow, asJSON bool) error {
	return engine.Use(ctx, a.App, false, func(ctx context.Context, g *engine.Client) error {
		l := runLog{app: a, chart: newChart(), asJSON: asJSON, follow: follow}
		for {
			if over, err := l.next(ctx, g, id); over || err != nil {
				return err
			}
		}
	})
}

// runLog shows the log of a run.
type runLog struct {
	*app
	*chart
	after          int
	asJSON, follow bool
}

// next prints the events so far; with follow it waits for more.
func (l *runLog) next(ctx context.Context, g *engine.Client, id string) (over bool, err error) {
	waiting := l.follow && l.after > 0
	more, over, err := l.read(ctx, g, id, waiting)
	if err != nil || more && !l.follow { // there may be more pages
		return false, err
	}
	if !l.asJSON && (more || !l.follow) {
		var run workflow.Run
		if err := g.Get(ctx, runPath(id), &run); err != nil {
			return false, err
		}
		if err := l.Print(l.runText(run, l.follow)); err != nil {
			return false, err
		}
	}
	return over || !l.follow, nil
}

// read fetches the next page of events.
func (l *runLog) read(ctx context.Context, g *engine.Client, id string, waiting bool) (more, over bool, err error) {
	path := fmt.Sprint(runPath(id), "/events?after=", l.after)
	if !l.asJSON {
		path += "&values=none"
	}
	if waiting {
		path += fmt.Sprint("&wait=", pollWait)
	}
	var list httpapi.EventList
	if err := g.Get(ctx, path, &list); err != nil {
		return false, false, err
	}
	more = list.Next > l.after
	l.after = list.Next
	for _, e := range list.Events {
		if !l.asJSON {
			l.Add(e)
		} else if err := l.PrintLine(e); err != nil {
			return more, false, err
		}
	}
	return more, list.Over, nil
}

// runText formats a run with its timeline.
func (c *chart) runText(run workflow.Run, following bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s  by %s  %s", run.ID, cli.Cell(run.Workflow, 64), run.Status, cli.Cell(strings.TrimSpace(run.Trigger+" "+run.Principal), 60), run.Started.Local().Format(time.DateTime))
	if run.Of != "" {
		fmt.Fprintf(&b, "  replays %s", cli.Cell(run.Of, 40))
	}
	fmt.Fprintln(&b)
	now := c.Last
	if !run.Status.Over() && !following {
		now = time.Now()
	}
	b.WriteString(c.text(now))
	for _, p := range run.Waiting {
		fmt.Fprintf(&b, "  %s waits for %s%s\n", cli.Cell(p.Step, 100), waitsFor(p.For), howToAnswer(run.ID, p))
	}
	if run.Error != nil {
		fmt.Fprintf(&b, "  %s: %s\n", run.Error.Kind, cli.Cell(run.Error.Message, 1000))
		if run.Error.Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", cli.Cell(run.Error.Hint, 300))
		}
	}
	return b.String()
}

func howToAnswer(id string, p runlog.Pending) string {
	switch p.For {
	case "form":
		return ": sallyport workflow answer " + id + " " + p.Step
	case "approval":
		return ": sallyport approvals approve " + p.Approval
	case "time":
		return ", " + p.Until.Local().Format(time.DateTime)
	}
	return ""
}
