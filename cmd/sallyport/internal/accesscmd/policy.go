package accesscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/rehearsal"
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
	}
	return cli.Group(cmd, policyTestCommand(a), policyTryCommand(a))
}

func policyTestCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [flags]",
		Short: "run the tests of the policy",
		Long: `Test decides about each call in policy.tests as a gateway would, without calling
anything, and prints those with another decision than expected. The exit status
is then 1.`,
		Example: "  sallyport policy test",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.policyTest(cmd.Context(), asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func policyTryCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
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
			return a.policyTry(cmd.Context(), args[0], args[1], asJSON)
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// testsJSON is what test --json prints.
type testsJSON struct {
	OK    bool       `json:"ok"`
	Tests []testJSON `json:"tests"`
}

// testJSON is the result of one test.
type testJSON struct {
	Line    int    `json:"line"`
	Call    string `json:"call"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
}

func (a *app) policyTest(ctx context.Context, asJSON bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	p, err := policy.New(cfg.Policy, nil)
	if err != nil {
		return err
	}
	for _, dead := range cfg.Policy.Unreachable(ctx, p) {
		a.Say(dead)
	}
	tests, err := rehearsal.Tests(ctx, cfg)
	if err != nil {
		return err
	}
	result := testsJSON{OK: true}
	for _, t := range tests {
		result.OK = result.OK && t.Problem == ""
		result.Tests = append(result.Tests, testJSON{t.Line, t.Call, t.Problem == "", t.Problem})
	}
	if asJSON {
		err = a.PrintJSON(result)
	} else {
		err = a.printTests(cfg.Path, result)
	}
	if err != nil || result.OK {
		return err
	}
	return cli.Status(cli.ExitFailed)
}

// printTests prints the tests that failed, and their number.
func (a *app) printTests(path string, result testsJSON) error {
	var b strings.Builder
	failed := 0
	for _, t := range result.Tests {
		if !t.OK {
			failed++
			fmt.Fprintf(&b, "%s:%d: %s: %s\n", path, t.Line, sanitize.Line(t.Call, 100), sanitize.Line(t.Problem, 400))
		}
	}
	switch n := len(result.Tests); {
	case n == 0:
		a.Say("the settings have no policy.tests")
		return nil
	case failed == 0:
		fmt.Fprintf(&b, "%s passed\n", cli.Plural(n, "test", "tests"))
	default:
		fmt.Fprintf(&b, "%d of %s failed\n", failed, cli.Plural(n, "test", "tests"))
	}
	return a.Print(b.String())
}

// decisionJSON is what try --json prints.
type decisionJSON struct {
	Decision policy.Action `json:"decision"`
	Rule     string        `json:"rule,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Message  string        `json:"message,omitempty"`
}

// text returns the decision for people.
func (d decisionJSON) text() string {
	text := string(d.Decision)
	if d.Reason != "" {
		text += ": " + sanitize.Line(d.Reason, 400)
	}
	if d.Message != "" {
		text += "\nmodels are told: " + sanitize.Line(d.Message, 400)
	}
	return text
}

func (a *app) policyTry(ctx context.Context, name, args string, asJSON bool) error {
	id, err := tool.ParseID(name)
	if err != nil {
		return err
	}
	if !json.Valid([]byte(args)) {
		return &tool.Error{Kind: tool.Invalid, Message: "the arguments are not JSON", Hint: `write an object, such as '{"name":"x"}'`}
	}
	id.Upstream = tool.Identifier(id.Upstream)
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout, NoPool: true}, func(ctx context.Context, g *gateway.Gateway) error {
		if err := a.WaitConnected(ctx, g); err != nil {
			return err
		}
		d, err := g.Guard.ExplainPolicy(ctx, tool.Call{Tool: id, Args: json.RawMessage(args)})
		if err != nil {
			return err
		}
		shown := decisionJSON{d.Action, d.Rule, d.Reason, d.Message}
		if asJSON {
			err = a.PrintJSON(shown)
		} else {
			err = a.Print(shown.text())
		}
		if err != nil || d.Action == policy.Allow {
			return err
		}
		return cli.Status(cli.ExitFailed)
	})
}
