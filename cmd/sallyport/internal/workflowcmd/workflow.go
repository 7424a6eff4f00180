package workflowcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
)

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:     "workflow [flags] COMMAND",
		Aliases: []string{"wf"},
		Short:   "run workflows, and show their results",
		Long: `Workflows are programs made of steps, in files in the folder workflows/ next to
upstreams.yaml (docs/how-to/workflows.md).

These commands use the gateway that runs on the data directory. If there is none,
they start a temporary one.`,
		Example: `  sallyport workflow list
  sallyport workflow run digest --input folder=docs
  sallyport workflow log r-k3vq7m2yhx4d
  sallyport workflow lint`,
	}
	return cli.Group(cmd, workflowListCommand(a), workflowShowCommand(a), workflowRunCommand(a), workflowRunsCommand(a), workflowLogCommand(a),
		workflowCancelCommand(a), workflowResumeCommand(a), workflowReplayCommand(a), workflowAnswerCommand(a), workflowLintCommand(a), workflowSchemaCommand(a),
		workflowTestCommand(a), workflowRecordCommand(a), fromExecutionCommand(a))
}

func workflowListCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list [flags]",
		Short:   "list the workflows, and what starts them",
		Example: "  sallyport workflow list",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listWorkflows(cmd.Context(), asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) listWorkflows(ctx context.Context, asJSON bool) error {
	var list httpapi.WorkflowList
	err := engine.Use(ctx, a.App, false, func(ctx context.Context, g *engine.Client) error { return g.Get(ctx, "/workflows", &list) })
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	if len(list.Workflows) == 0 {
		if _, err := a.Load(); err != nil {
			return err // which may be why
		}
		a.Say("no workflows found; they are files in the folder workflows/ next to upstreams.yaml")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTARTED BY\tDESCRIPTION")
	for _, one := range list.Workflows {
		fmt.Fprintf(table, "%s\t%s\t%s\n", cli.Cell(one.Name, 64), cli.Cell(strings.Join(starters(one), ", "), 60), cli.Cell(one.Description, 100))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

// starters returns what starts a workflow, other than people.
func starters(one workflow.Info) (words []string) {
	if one.Exposed {
		words = append(words, "programs")
	}
	for _, s := range one.Schedules {
		words = append(words, clockText(s))
	}
	if one.Webhook {
		words = append(words, "webhook")
	}
	return words
}

func clockText(c workflow.Clock) string {
	if c.Every != "" {
		return "every " + strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(c.Every)
	}
	return strings.TrimSpace(c.Cron + " " + c.Zone)
}

func workflowShowCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [flags] NAME|RUN",
		Short: "show a workflow: inputs, steps, what starts it; or a run",
		Long: `Show prints the inputs and outputs of a workflow, what starts it and when it is due
next, and its steps. For a run (r-...) it prints the same as log.`,
		Example: "  sallyport workflow show digest",
		Args:    cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if isRunID(args[0]) {
				return a.workflowLog(cmd.Context(), args[0], false, asJSON)
			}
			return a.showWorkflow(cmd.Context(), args[0], asJSON)
		},
		ValidArgsFunction: a.completeWorkflows,
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// isRunID reports whether name is the id of a run. Names of workflows have no "-".
func isRunID(name string) bool { return strings.HasPrefix(name, "r-") }

func (a *app) showWorkflow(ctx context.Context, name string, asJSON bool) error {
	var info workflow.Info
	err := engine.Use(ctx, a.App, false, func(ctx context.Context, g *engine.Client) error {
		return g.Get(ctx, "/workflows/"+url.PathEscape(name), &info)
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(info)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", info.Name, info.Path)
	if info.Description != "" {
		fmt.Fprintln(&b, strings.TrimSpace(info.Description))
	}
	properties(&b, "inputs", info.Inputs)
	properties(&b, "outputs", info.Outputs)
	triggers(&b, info)
	fmt.Fprintln(&b, "\nsteps")
	outline(&b, info.Steps, "  ")
	return a.Print(trailingSpaces.ReplaceAllString(b.String(), ""))
}

// properties lists the members of an object's schema, in the order of the file.
func properties(b *strings.Builder, title string, schema json.RawMessage) {
	var object struct {
		Properties json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		return
	}
	names := memberNames(object.Properties)
	if len(names) == 0 {
		return
	}
	var members map[string]struct {
		Type        any
		Description string
		Default     json.RawMessage
		Enum        []any
	}
	_ = json.Unmarshal(object.Properties, &members) // members that do not fit are omitted
	fmt.Fprintf(b, "\n%s\n", title)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, name := range names {
		m := members[name]
		notes := ""
		switch {
		case len(m.Default) > 0:
			notes = "default " + string(m.Default)
		case title == "inputs" && slices.Contains(object.Required, name):
			notes = "required"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", cli.Cell(name, 64), cli.Cell(typeText(m.Type), 40), strings.TrimPrefix(cli.Cell(notes, 60), "-"), strings.TrimPrefix(cli.Cell(m.Description, 100), "-"))
	}
	_ = table.Flush() // to a builder
}

// typeText writes the type of a schema.
func typeText(of any) string {
	switch of := of.(type) {
	case string:
		return of
	case []any:
		var words []string
		for _, one := range of {
			words = append(words, fmt.Sprint(one))
		}
		return strings.Join(words, " or ")
	}
	return "any"
}

// memberNames returns the member names of a JSON object, in order.
func memberNames(object json.RawMessage) (names []string) {
	dec := json.NewDecoder(strings.NewReader(string(object)))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var skipped json.RawMessage
		if err != nil || dec.Decode(&skipped) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}

func triggers(b *strings.Builder, info workflow.Info) {
	if len(starters(info)) == 0 {
		return
	}
	fmt.Fprintln(b, "\nstarted by")
	if info.Exposed {
		fmt.Fprintf(b, "  programs, as workflows.%s\n", info.Name)
	}
	for _, s := range info.Schedules {
		next := ""
		if !s.Next.IsZero() {
			next = ", next " + s.Next.Local().Format(time.DateTime)
		}
		fmt.Fprintf(b, "  the clock: %s%s\n", clockText(s), next)
	}
	if info.Webhook {
		fmt.Fprintf(b, "  requests to /hooks/%s that are signed\n", info.Name)
	}
}

// outline writes steps as a tree.
func outline(b *strings.Builder, steps []workflow.Outline, indent string) {
	for _, s := range steps {
		line := strings.TrimSpace(s.Kind + " " + cli.OneLine(s.Of, 80))
		if s.ID != "" {
			line = s.ID + ": " + line
		}
		if s.If != "" {
			line += " if " + cli.OneLine(s.If, 60)
		}
		if s.Description != "" {
			line += "  # " + cli.OneLine(s.Description, 80)
		}
		fmt.Fprintln(b, indent+line)
		outline(b, s.Steps, indent+"  ")
	}
}

// completeWorkflows completes the names of workflows.
func (a *app) completeWorkflows(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, d := range a.loadDefinitions() {
			names = append(names, d.Name+"\t"+cli.OneLine(d.Description, 60))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
