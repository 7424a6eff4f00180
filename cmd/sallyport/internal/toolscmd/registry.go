package toolscmd

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// registryJSON is what search --registry --json prints.
type registryJSON struct {
	Servers []serverJSON `json:"servers"`
	// More: the registry has further ones.
	More bool `json:"more"`
}

// serverJSON is a server of the registry.
type serverJSON struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Status      registry.Status `json:"status"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	// Kinds are the types of its packages, and remote.
	Kinds      []string `json:"kinds"`
	Repository string   `json:"repository,omitempty"`
}

// usualServers is how many servers search --registry prints without --limit.
const usualServers = 20

// searchRegistry prints the servers of the MCP registry with the words in their names.
func (a *app) searchRegistry(ctx context.Context, words string, limit int, asJSON bool) error {
	base := registry.URL
	if cfg, err := a.ReadSettings(); err == nil {
		base = cfg.Registry
	}
	if limit == 0 {
		limit = usualServers
	}
	p := a.Progress("searching the MCP registry", 0)
	found, more, err := registry.New(base).Search(ctx, words, limit)
	p.Stop()
	if err != nil {
		return &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err, Hint: "registry in upstreams.yaml names another registry"}
	}
	result := registryJSON{More: more}
	for _, e := range found {
		s := e.Server
		result.Servers = append(result.Servers, serverJSON{s.Name, s.Version, e.Status(), s.Title, s.Description, kindsOf(s), s.Repository.URL})
	}
	if asJSON {
		return a.PrintJSON(result)
	}
	return a.printServers(result)
}

// kindsOf returns the types of the packages of a server, and remote.
func kindsOf(s registry.Server) (kinds []string) {
	for _, p := range s.Packages {
		kinds = append(kinds, sanitize.Line(p.RegistryType, 20))
	}
	if len(s.Remotes) > 0 {
		kinds = append(kinds, "remote")
	}
	return kinds
}

func (a *app) printServers(result registryJSON) error {
	if len(result.Servers) == 0 {
		a.Say("the registry has no server with these words in its name")
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tVERSION\tKINDS\tABOUT")
	for _, s := range result.Servers {
		about := cli.Cell(s.Description, 70)
		if s.Status != registry.Active {
			about = string(s.Status) + ": " + about
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, cli.Cell(s.Version, 20), strings.Join(s.Kinds, " "), about)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := a.Print(b.String()); err != nil {
		return err
	}
	if result.More {
		a.Say("there are more; add words, or use --limit")
	}
	a.Say("anybody can publish there: sallyport add SERVER shows who did, before it runs anything")
	return nil
}
