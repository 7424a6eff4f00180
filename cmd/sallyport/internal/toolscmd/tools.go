package toolscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// ToolsCommand returns the verb.
func ToolsCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var only string
	var asJSON, refresh, tokens bool
	cmd := &cobra.Command{
		Use:   "tools [flags]",
		Short: "list every tool of every upstream",
		Long: `Tools prints the tools of the upstreams as a table, by the names that a program
imports. It connects to an upstream only if no earlier run has seen its tools.
Upstreams that are not available are reported on stderr, and the exit status is
then 1.

With --tokens it prints instead the tokens that a model reads at every turn for
the tools that clients of serve see, for each profile.`,
		Example: `  sallyport tools --upstream memory
  sallyport tools --json | jq -r '.tools[] | select(.annotations.destructiveHint) | .id'
  sallyport tools --tokens`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokens {
				return a.tokens(cmd.Context(), asJSON)
			}
			return a.tools(cmd.Context(), only, asJSON, refresh)
		},
	}
	cmd.Flags().StringVar(&only, "upstream", "", "list only the tools of this `UPSTREAM`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with schemas and upstreams")
	cmd.Flags().BoolVar(&refresh, "refresh", false, "connect to every upstream and list its tools again")
	cmd.Flags().BoolVar(&tokens, "tokens", false, "print the token costs of the tools that clients see, by profile")
	return cmd
}

func (a *app) tools(ctx context.Context, only string, asJSON, refresh bool) error {
	return a.WithGateway(ctx, gateway.Options{ConnectWait: cli.ConnectTimeout, Fresh: refresh}, func(ctx context.Context, g *gateway.Gateway) error {
		ups, err := cli.SelectUpstreams(g.Catalog.Upstreams(), only)
		if err != nil {
			return err // before waiting for connections
		}
		wait := g.Catalog.WaitConnected
		if only != "" {
			wait = func(ctx context.Context) { g.Catalog.Await(ctx, ups[0].ID) }
		}
		if err := a.WaitFor(ctx, g, wait); err != nil {
			return err
		}
		if ups, err = cli.SelectUpstreams(g.Catalog.Upstreams(), only); err != nil {
			return err
		}
		tools := toolsOf(g.Catalog.Tools(), ups)
		if asJSON {
			err = a.PrintJSON(newListing(tools, ups))
		} else {
			err = a.printTable(tools)
		}
		if err != nil {
			return err
		}
		return a.ReportMissing(ups)
	})
}

func toolsOf(tools []tool.Tool, ups []catalog.Upstream) []tool.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool {
		return !slices.ContainsFunc(ups, func(up catalog.Upstream) bool { return up.ID == t.ID.Upstream })
	})
}

// summaryLength is how wide the last column of the table may be, in characters.
const summaryLength = 72

func (a *app) printTable(tools []tool.Tool) error {
	if len(tools) == 0 {
		a.Say("no tools")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UPSTREAM\tTOOL\tABOUT")
	for _, t := range tools {
		fmt.Fprintf(table, "%s\t%s\t%s\n", sanitize.Line(t.ID.Upstream, 80), sanitize.Line(t.ID.Name, 80), summary(t))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

// summary returns the first sentence of a tool's description, or its title, in one line.
func summary(t tool.Tool) string {
	text := cmp.Or(sanitize.Line(t.Description, 4*summaryLength), sanitize.Line(t.Title, 4*summaryLength))
	if sentence, _, ok := strings.Cut(text, ". "); ok {
		text = sentence
	}
	return strings.TrimSuffix(sanitize.Line(text, summaryLength), ".")
}

// listingJSON is what tools --json prints.
type listingJSON struct {
	Tools     []toolJSON     `json:"tools"`
	Upstreams []upstreamJSON `json:"upstreams"`
}

type toolJSON struct {
	ID          string           `json:"id"`
	Upstream    string           `json:"upstream"`
	Name        string           `json:"name"`
	Wire        string           `json:"wire"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Input       json.RawMessage  `json:"input,omitempty"`
	Output      json.RawMessage  `json:"output,omitempty"`
	Annotations tool.Annotations `json:"annotations"`
}

type upstreamJSON struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Status        string `json:"status"`
	Problem       string `json:"problem,omitempty"`
	Tools         int    `json:"tools"`
	Quarantined   int    `json:"quarantined,omitempty"`
	ServerName    string `json:"server_name,omitempty"`
	ServerVersion string `json:"server_version,omitempty"`
	Protocol      string `json:"protocol,omitempty"`
}

func newListing(tools []tool.Tool, ups []catalog.Upstream) listingJSON {
	list := listingJSON{Tools: []toolJSON{}, Upstreams: []upstreamJSON{}}
	for _, t := range tools {
		list.Tools = append(list.Tools, toolJSON{
			ID: t.ID.String(), Upstream: t.ID.Upstream, Name: t.ID.Name, Wire: t.Wire, Title: t.Title,
			Description: t.Description, Input: t.Input, Output: t.Output, Annotations: t.Annotations,
		})
	}
	for _, up := range ups {
		list.Upstreams = append(list.Upstreams, upstreamJSON{
			ID: up.ID, Name: up.Name, Status: cli.UpstreamStatus(up), Problem: cli.UpstreamProblem(up), Tools: up.State.Tools, Quarantined: up.Held,
			ServerName: up.State.ServerName, ServerVersion: up.State.ServerVersion, Protocol: up.State.Protocol,
		})
	}
	return list
}
