package accesscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// PolicyCommand returns the verb.
func PolicyCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:     "policy COMMAND",
		Short:   "test the rules of the settings, or try them on a call",
		Long:    "Policy works with the section policy of the settings: which calls are made, asked about or refused.",
		Example: "  sallyport policy test\n  sallyport policy try github.delete_repo '{\"name\":\"x\"}'",
		Args:    cli.UnknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(policyTestCommand(a), policyTryCommand(a))
	return cmd
}

func policyTestCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "test [flags]",
		Short: "run the tests of the policy",
		Long: `Test decides about each call in policy.tests as a gateway would, without calling
anything, and prints those with another decision than expected. The exit status
is then 1.`,
		Example: "  sallyport policy test",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.policyTest(cmd.Context()) },
	}
}

func policyTryCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "try [flags] TOOL [ARGUMENTS]",
		Short: "show the decision about one call, and why",
		Long: `Try shows how the rules decide about a call of a tool, with ARGUMENTS as a JSON object.
The call is not made and counts towards no limit. The upstream is connected to if no
earlier run has seen its tools, as the decision depends on their annotations. The exit
status is 0 for a call that is allowed, and 1 for all others.`,
		Example: "  sallyport policy try memory.delete_entities '{\"entityNames\":[\"Ann\"]}'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.Misuse(cmd, "try takes a TOOL and its ARGUMENTS")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				args = append(args, "{}")
			}
			return a.policyTry(cmd.Context(), args[0], args[1])
		},
	}
}

func (a *app) policyTest(ctx context.Context) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	p, err := policy.New(cfg.Policy, nil)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, dead := range cfg.Policy.Unreachable(ctx, p) {
		a.Say(dead)
	}
	failed := 0
	for _, t := range cfg.Policy.Tests {
		d, err := p.Run(ctx, t, labelsFor(cfg, t.Call))
		if err != nil {
			return err
		}
		if why := t.Failure(d); why != "" {
			failed++
			fmt.Fprintf(&b, "%s:%d: %s: %s\n", cfg.Path, t.Line, sanitize.Line(t.Call, 100), sanitize.Line(why, 400))
		}
	}
	switch n := len(cfg.Policy.Tests); {
	case n == 0:
		a.Say("the settings have no policy.tests")
	case failed == 0:
		fmt.Fprintf(&b, "%s passed\n", cli.Plural(n, "test", "tests"))
	default:
		fmt.Fprintf(&b, "%d of %s failed\n", failed, cli.Plural(n, "test", "tests"))
	}
	if err := a.Print(b.String()); err != nil || failed == 0 {
		return err
	}
	return cli.Status(cli.ExitFailed)
}

// labelsFor returns the labels that the settings give a tool.
func labelsFor(cfg *config.Config, call string) []string {
	id, err := tool.ParseID(call)
	if err != nil {
		return nil
	}
	for _, up := range cfg.Upstreams {
		if up.ID == tool.Identifier(id.Upstream) {
			return up.LabelsOf(id.Name)
		}
	}
	return nil
}

func (a *app) policyTry(ctx context.Context, name, args string) error {
	id, err := tool.ParseID(name)
	if err != nil {
		return err
	}
	if !json.Valid([]byte(args)) {
		return &tool.Error{Kind: tool.Invalid, Message: "the arguments are not JSON", Hint: `write an object, such as '{"name":"x"}'`}
	}
	id.Upstream = tool.Identifier(id.Upstream)
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout, NoPool: true}, func(ctx context.Context, g *gateway.Gateway) error {
		g.Catalog.WaitConnected(ctx)
		d, err := g.Guard.ExplainPolicy(ctx, tool.Call{Tool: id, Args: json.RawMessage(args)})
		if err != nil {
			return err
		}
		text := string(d.Action)
		if d.Reason != "" {
			text += ": " + sanitize.Line(d.Reason, 400)
		}
		if d.Message != "" {
			text += "\nmodels are told: " + sanitize.Line(d.Message, 400)
		}
		if err := a.Print(text + "\n"); err != nil || d.Action == policy.Allow {
			return err
		}
		return cli.Status(cli.ExitFailed)
	})
}
