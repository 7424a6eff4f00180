package accesscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/internal/approval"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// ApprovalsCommand returns the verb.
func ApprovalsCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "approvals [COMMAND] [flags]",
		Short: "answer calls of tools that wait for a person",
		Long: `Approvals lists the calls that wait for a person, of all clients, because a rule in
upstreams.yaml says so: those of the gateways that run on the data directory,
and stored ones of gateways that have ended. Personal data in arguments is shown
as tokens.

A waiting program continues with the answer. A program that was stopped in the
meantime can be resumed by its model, without another question.`,
		Example: `  sallyport approvals
  sallyport approvals approve a-k3vq7m2yhx4dn --for execution
  sallyport approvals deny a-k3vq7m2yhx4dn --reason "not on a Friday"
  sallyport approvals watch`,
		Args: cli.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.approvals(cmd.Context(), all, asJSON) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also show those that were recently answered or have expired")
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, cli.OneObject)
	list := &cobra.Command{Use: "list [flags]", Short: "list the calls that wait, as approvals alone does", Args: cli.NoArguments, RunE: cmd.RunE}
	list.Flags().BoolVar(&all, "all", false, cmd.Flag("all").Usage)
	cmd.AddCommand(list, approveCommand(a, &asJSON), denyCommand(a, &asJSON), doneCommand(a, &asJSON), watchCommand(a))
	return cmd
}

func approveCommand(a *app, asJSON *bool) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use:     "approve [flags] ID",
		Short:   "let a call that waits go on",
		Example: "  sallyport approvals approve a-k3vq7m2yhx4dn",
		Args:    cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkScope(scope); err != nil {
				return err
			}
			return a.decide(cmd.Context(), args[0], httpapi.Decision{Decision: httpapi.Allow, Scope: approval.Scope(scope)}, *asJSON)
		},
	}
	cmd.Flags().StringVar(&scope, "for", "once", "allow this call (once), or any call of the tool, until the program\nends (execution) or the client's session (session): `SCOPE`")
	cli.CompleteFlag(cmd, "for", scopes()...)
	return cmd
}

func denyCommand(a *app, asJSON *bool) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:     "deny [flags] ID",
		Short:   "refuse a call that waits",
		Example: "  sallyport approvals deny a-k3vq7m2yhx4dn --reason \"ask Ann first\"",
		Args:    cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args[0], httpapi.Decision{Decision: httpapi.Deny, Reason: reason}, *asJSON)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "tell the program why: `TEXT`, one line")
	return cmd
}

func doneCommand(a *app, asJSON *bool) *cobra.Command {
	result := ""
	cmd := &cobra.Command{
		Use:   "done [flags] ID",
		Short: "say that a call in doubt was done, so that it is not made again",
		Long: `Done answers a question about a call that may have been done before its gateway
was stopped: it was done, and is not made again. The program gets the result that
you give, or a note that none was given. Use approve if the call was not done and
is to be made; with deny it is not made, and the program gets an error.`,
		Example: "  sallyport approvals done a-k3vq7m2yhx4dn --result '{\"id\": 17}'",
		Args:    cli.OneID,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := httpapi.Decision{Decision: httpapi.Done}
			if result != "" {
				if !json.Valid([]byte(result)) {
					return &tool.Error{Kind: tool.Invalid, Message: "the result is not JSON", Hint: "write --result '{\"id\": 17}', or --result '\"a text\"'"}
				}
				d.Result = json.RawMessage(result)
			}
			return a.decide(cmd.Context(), args[0], d, *asJSON)
		},
	}
	cmd.Flags().StringVar(&result, "result", "", "what the call returned, in `JSON`")
	return cmd
}

func scopes() []string {
	return []string{string(approval.Once), string(approval.Execution), string(approval.Session)}
}

func checkScope(scope string) error {
	if slices.Contains(scopes(), scope) {
		return nil
	}
	hint := "use once, execution or session"
	if near := suggest.Of(scope, scopes()); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("a call cannot be approved for %.40q", scope), Hint: hint}
}

func (a *app) approvals(ctx context.Context, all, asJSON bool) error {
	var list []approvals.Approval
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) (err error) {
		list, err = cli.PendingApprovals(ctx, c, all)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(httpapi.ApprovalList{Approvals: list})
	}
	if len(list) == 0 {
		a.Say("no pending approvals")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tAGE\tWHO\tTOOL\tARGUMENTS\tREASON")
	for _, one := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Cell(one.ID, 40), cli.Cell(string(one.State), 12), cli.Age(one.Asked), cli.Cell(one.Principal, 30), cli.Cell(one.Tool, 80),
			cli.Cell(strings.Join(strings.Fields(one.Arguments), " "), 80), cli.Cell(one.Reason, 100))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

func (a *app) decide(ctx context.Context, id string, d httpapi.Decision, asJSON bool) error {
	var now approvals.Approval
	err := a.WithControls(ctx, func(ctx context.Context, c *cli.Gateways) error { return answer(ctx, c, id, d, &now) })
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(now)
	}
	return a.Print(decisionText(now, d))
}

// answer sends a decision to the gateway that has the approval, and stores the new state in now.
func answer(ctx context.Context, c *cli.Gateways, id string, d httpapi.Decision, now *approvals.Approval) error {
	return c.Find(ctx, "/approvals/"+url.PathEscape(id), d, now)
}

// decisionText returns the message about a decision.
func decisionText(now approvals.Approval, d httpapi.Decision) string {
	if d.Decision == httpapi.Deny {
		return fmt.Sprintf("denied %s: %s", now.ID, now.Tool)
	}
	if d.Decision == httpapi.Done {
		return fmt.Sprintf("noted %s: %s was done", now.ID, now.Tool)
	}
	what := "this call"
	if now.Scope == approval.Execution || now.Scope == approval.Session {
		what = "any call of it in this " + string(now.Scope)
	}
	return fmt.Sprintf("approved %s: %s, %s", now.ID, now.Tool, what)
}
