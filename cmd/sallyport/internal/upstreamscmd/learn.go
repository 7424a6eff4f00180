package upstreamscmd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/codegen"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/resultschema"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

func upstreamsLearnCommand(a *app) *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "learn [flags] NAME",
		Short: "call read-only tools once to learn what they return",
		Long: `Learn calls tools of an upstream whose results have no declared type, once each, so
that the first program already sees types in place of Any. It keeps the shapes of the
results, not the results.

It calls only tools that the upstream declares read-only, with the arguments of the
last successful call in the journals of programs, or with those that the definition
gives as examples or defaults. It lists the calls and asks before it makes them;
--yes does not ask. The policy applies to the calls.

Exit status: 0 if all calls succeeded, 1 if one failed.`,
		Example: `  sallyport upstreams learn github
  sallyport upstreams learn github --yes --json`,
		Args: cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.upstreamsLearn(cmd.Context(), args[0], yes, asJSON)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "make the calls without asking")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// learnCall is a call that learns the result of a tool.
type learnCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Signature has the observed type of the result; Problem is why there is none.
	Signature string `json:"signature,omitempty"`
	Problem   string `json:"problem,omitempty"`

	id tool.ID
}

func (a *app) upstreamsLearn(ctx context.Context, name string, yes, asJSON bool) error {
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout, NoPool: true, Purpose: "learn"}, func(ctx context.Context, g *gateway.Gateway) error {
		ups, err := cli.SelectUpstreams(g.Catalog.Upstreams(), name)
		if err != nil {
			return a.explainMissing(name, err)
		}
		if err := g.Catalog.Test(ctx, ups[0].ID); err != nil {
			return err
		}
		g.Catalog.WaitConnected(ctx)
		calls, skipped := planLearning(g, ups[0].ID)
		if ok, err := a.confirmLearning(ctx, calls, skipped, yes, asJSON); err != nil || !ok {
			return err
		}
		return a.learn(ctx, g, calls, asJSON)
	})
}

// planLearning returns the calls, and how many tools that could be called have no known arguments.
func planLearning(g *gateway.Gateway, upstream string) (calls []learnCall, skipped int) {
	earlier := g.History.LastArguments(upstream)
	for _, t := range g.Catalog.Tools() {
		e, known := g.Catalog.Lookup(t.ID)
		if t.ID.Upstream != upstream || !known || !isLearnable(g.Catalog, e) {
			continue
		}
		arguments, ok := earlier[t.ID]
		if !ok {
			arguments, ok = codegen.ExampleArguments(t)
		}
		if !ok {
			skipped++
			continue
		}
		calls = append(calls, learnCall{Tool: t.ID.String(), Arguments: arguments, id: t.ID})
	}
	return calls, skipped
}

// isLearnable reports whether a tool only reads and the type of its results is not known.
func isLearnable(c *catalog.Catalog, e *catalog.Entry) bool {
	hints := e.Annotations
	reads := hints.ReadOnly != nil && *hints.ReadOnly && (hints.Destructive == nil || !*hints.Destructive)
	return reads && !e.Declares() && c.WithObserved(e).Observed == nil
}

// confirmLearning shows the calls and reports whether to make them: by the flag, else it asks if stdin is a terminal.
func (a *app) confirmLearning(ctx context.Context, calls []learnCall, skipped int, yes, asJSON bool) (bool, error) {
	if asJSON && yes {
		return true, nil
	}
	if skipped > 0 {
		a.Say(cli.Count(skipped, "read-only tool") + " without known arguments: not called")
	}
	if len(calls) == 0 {
		a.Say("nothing to learn: each other tool is not read-only, declares its results, or was observed")
		return asJSON, nil
	}
	for _, c := range calls {
		fmt.Fprintf(a.Stderr, "  %s %s\n", c.Tool, sanitize.Line(string(c.Arguments), 200))
	}
	if yes {
		return true, nil
	}
	if !cli.IsTerminal(a.Stdin) {
		return false, &tool.Error{Kind: tool.Invalid, Message: "nothing was called", Hint: "--yes makes the calls without asking"}
	}
	return cli.Confirm(ctx, a.App, "Make "+cli.Count(len(calls), "call")+"?", false)
}

func (a *app) learn(ctx context.Context, g *gateway.Gateway, calls []learnCall, asJSON bool) error {
	p := a.Progress("calling "+cli.Count(len(calls), "tool"), len(calls))
	var failed error
	for i := range calls {
		if err := ctx.Err(); err != nil {
			p.Stop()
			return err
		}
		if calls[i].make(ctx, g); calls[i].Problem != "" {
			failed = cli.Status(cli.ExitFailed)
		}
	}
	p.Stop()
	if asJSON {
		if err := a.PrintJSON(map[string]any{"calls": calls}); err != nil {
			return err
		}
		return failed
	}
	for _, c := range calls {
		line := c.Signature
		if c.Problem != "" {
			line = c.Tool + ": failed: " + c.Problem
		}
		if err := a.Print(line); err != nil {
			return err
		}
	}
	return failed
}

// make calls the tool; a middleware of the gateway learns the shape of the result.
func (c *learnCall) make(ctx context.Context, g *gateway.Gateway) {
	result, err := g.Call(ctx, tool.Call{Tool: c.id, Args: c.Arguments})
	switch {
	case err != nil:
		c.Problem = cli.Clean(err.Error())
	case result.IsError:
		c.Problem = sanitize.Line(result.Text(), 200)
	default:
		c.Signature, c.Problem = observedSignature(g.Catalog, c.id, result)
	}
}

// observedSignature returns the signature of a tool with the type of a result.
func observedSignature(c *catalog.Catalog, id tool.ID, result tool.Result) (signature, problem string) {
	shape, err := resultschema.ShapeOf(result.Value())
	e, known := c.Lookup(id)
	if err != nil || !known {
		return "", "the result has no type"
	}
	t := e.Tool
	t.Observed = &tool.Observed{Shape: shape, Count: 1}
	return codegen.Usual{}.Signature(t, codegen.Python), ""
}
