package toolscmd

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
)

// costsJSON is what tools --tokens --json prints.
type costsJSON struct {
	Encoding string           `json:"encoding"`
	Costs    []mcpserver.Cost `json:"costs"`
	// Profiles are those that the settings turn on.
	Profiles []string `json:"profiles"`
	Here     int      `json:"here"`
}

// tokens prints the token costs of the tools that clients see. It connects to no upstream.
func (a *app) tokens(ctx context.Context, asJSON bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	return a.WithGateway(ctx, gateway.Options{NoPool: true}, func(_ context.Context, g *gateway.Gateway) error {
		costs, err := mcpserver.Costs(g.Service(), cli.ToolOptions(cfg, g, a.Logger(0)))
		if err != nil {
			return err
		}
		list := costsJSON{Encoding: "o200k_base", Costs: costs, Profiles: append([]string{config.ProfileCore}, cfg.Profiles...)}
		for _, c := range costs {
			list.Here += c.Current
		}
		if asJSON {
			return a.PrintJSON(list)
		}
		return a.printCosts(list)
	})
}

// printCosts prints a table with a sum after each profile.
func (a *app) printCosts(list costsJSON) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "TOKENS\tHERE\t  PROFILE, TOOL")
	for at := 0; at < len(list.Costs); {
		profile, sum, here, end := list.Costs[at].Profile, 0, 0, at
		for ; end < len(list.Costs) && list.Costs[end].Profile == profile; end++ {
			sum, here = sum+list.Costs[end].Tokens, here+list.Costs[end].Current
		}
		fmt.Fprintf(table, "%d\t%s\t  %s\n", sum, cli.OrDash(here), profile)
		for ; at < end; at++ {
			c := list.Costs[at]
			fmt.Fprintf(table, "%d\t%s\t    %s\n", c.Tokens, cli.OrDash(c.Current), c.Name)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nA model pays %d tokens (%s) at every turn with these settings: %s.\n", list.Here, list.Encoding, strings.Join(list.Profiles, ", "))
	b.WriteString("TOKENS is for default settings without upstreams, with the profile on; HERE is for these settings.\n")
	return a.Print(b.String())
}
