package toolscmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/catalog"
	"sallyport/gateway/toolsearch"
)

// SearchCommand returns the verb.
func SearchCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var s toolsearch.Request
	var asJSON, inRegistry bool
	cmd := &cobra.Command{
		Use:   "search [flags] [QUERY...]",
		Short: "find tools, as search_tools does",
		Long: `Search prints the result of search_tools: the tools that match the query best,
each with its signature and a line about it. Without a query it lists the
upstreams, or the tools of the upstream that --upstream names.

With --registry it searches the names of the servers in the MCP registry instead, of
which sallyport add adds one.`,
		Example: `  sallyport search read several files
  sallyport search --detail full --language typescript create_entities
  sallyport search --registry weather
  sallyport search --json --limit 3 weather | jq -r '.tools[].id'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.Limit < 0 || s.Budget < 0 {
				return cli.Misuse(cmd, "--limit and --budget must not be negative")
			}
			s.Query = strings.Join(args, " ")
			if inRegistry {
				return a.searchRegistry(cmd.Context(), s.Query, s.Limit, asJSON)
			}
			return a.search(cmd.Context(), s, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&s.Detail), "detail", "", "detail of each tool: `LEVEL` is names, summary,\nsignature or full (default signature)")
	flags.StringVar(&s.Upstream, "upstream", "", "search only this `UPSTREAM`")
	flags.IntVar(&s.Limit, "limit", 0, "print at most `N` tools (default as many as the budget allows)")
	flags.IntVar(&s.Budget, "budget", 0, "use at most `N` tokens (default 400)")
	flags.StringVar(&s.Language, "language", "", "write signatures in `LANGUAGE`: python or typescript\n(default python)")
	flags.BoolVar(&inRegistry, "registry", false, "search the servers of the MCP registry, not the tools here")
	cli.JSONFlag(cmd, &asJSON)
	cli.CompleteFlag(cmd, "detail", "names", "summary", "signature", "full")
	cli.CompleteFlag(cmd, "language", "python", "typescript")
	return cmd
}

func (a *app) search(ctx context.Context, s toolsearch.Request, asJSON bool) error {
	return a.WithGateway(ctx, gateway.Options{}, func(ctx context.Context, g *gateway.Gateway) error {
		p := a.Progress("searching", 0)
		found, err := g.Searcher.Search(ctx, s)
		p.Stop()
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !asJSON:
			a.sayLate(found)
			return a.Print(found.Text())
		}
		if found.Tools == nil {
			found.Tools = []toolsearch.FoundTool{}
		}
		return a.PrintJSON(found)
	})
}

// sayLate says how to have the tools of upstreams that did not answer in time: a search ends before they do.
func (a *app) sayLate(found toolsearch.Found) {
	var late []string
	for _, up := range found.Upstreams {
		if up.Problem == catalog.StillConnecting && up.Tools == 0 {
			late = append(late, up.ID)
		}
	}
	if len(late) > 0 {
		a.Say(fmt.Sprintf("no answer yet from %s; \"sallyport tools\" waits for it, and later searches include its tools", strings.Join(late, ", ")))
	}
}
