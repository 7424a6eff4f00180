package auditcmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
)

// ExplainCommand returns the verb.
func ExplainCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [flags] EXECUTION",
		Short: "show what was decided about an execution's calls, and why",
		Long: `Explain prints the calls of one execution in order: the decision of the policy, the
rule, and the labels of the result. Then it lists all labels that the execution had
read, including those of its session and files, and where each came from. Arguments
and results are not stored, and not shown.`,
		Example: "  sallyport explain e-2f6qdmnhx3k4c",
		Args:    cli.OneID,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.explain(cmd.Context(), args[0], asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) explain(ctx context.Context, id string, asJSON bool) error {
	r, err := a.execution(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(r)
	}
	text, err := explanation(r)
	if err != nil {
		return err
	}
	return a.Print(text)
}

// explanation returns the calls of an execution with their decisions, and the origins of its labels.
func explanation(r history.Record) (string, error) {
	var b strings.Builder
	b.WriteString(heading(r))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, c := range r.Calls {
		fmt.Fprintf(table, "%3d\t%s\t%s\t%s\t%s%s\n", i+1, cli.Cell(c.Tool.String(), 80), decision(c), cli.Cell(c.Rule, 60), cli.Cell(c.Outcome, 20), labelsNote(c.Labels))
	}
	if err := table.Flush(); err != nil {
		return "", err
	}
	if more := r.Made - len(r.Calls); more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	for i, c := range r.Calls {
		if c.Decision == "" || c.Decision == "allow" && c.Approval == "" {
			continue
		}
		fmt.Fprintf(&b, "call %d, %s: %s: %s\n", i+1, cli.Cell(c.Tool.String(), 80), decisionDetail(c), cli.Cell(c.Reason, 300))
	}
	for _, o := range r.Read {
		fmt.Fprintf(&b, "read %s: %s\n", cli.Cell(o.Label, 64), origin(o, r.ID))
	}
	return b.String(), nil
}

// decision returns the decision about a call in a word.
func decision(c toolcall.RecordedCall) string {
	if c.Replayed {
		return "replayed"
	}
	return cmp.Or(c.Decision, "-")
}

// decisionDetail describes the decision about a call that was refused or needed approval.
func decisionDetail(c toolcall.RecordedCall) string {
	text := "approved"
	switch c.Decision {
	case "deny":
		text = "refused"
	case "ask":
		text = "waits for approval"
	}
	if c.Approval != "" {
		text += " (" + cli.Cell(c.Approval, 60) + ")"
	}
	return text
}

// labelsNote returns the table cell with the labels of a result.
func labelsNote(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return "\tbrings " + sanitize.Line(strings.Join(labels, ", "), 100)
}

// origin describes where a label came from.
func origin(o toolcall.Origin, execution string) string {
	from := "from " + cli.Cell(o.Tool, 80)
	if o.File != "" {
		from = fmt.Sprintf("from the file %s, which was written by one that had read it", cli.Cell(o.File, 200))
	}
	switch {
	case o.Execution == execution:
		from += ", by this execution"
	case o.Execution != "":
		from += ", by execution " + cli.Cell(o.Execution, 40)
	default:
		from += ", by a call of the client"
	}
	return from + ", " + o.Time.Local().Format(time.DateTime)
}
