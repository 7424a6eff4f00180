package upstreamscmd

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"sallyport/internal/presets"
	"sallyport/internal/sanitize"
)

// presetJSON is a well-known server as add --list --json prints it.
type presetJSON struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Publisher   string   `json:"publisher"`
	From        string   `json:"from"`
	Hosts       []string `json:"hosts"`
}

// listPresets prints the well-known servers.
func (a *adder) listPresets(asJSON bool) error {
	var list struct {
		Servers []presetJSON `json:"servers"`
	}
	for _, p := range presets.All() {
		list.Servers = append(list.Servers, presetJSON{p.ID, p.Server.Description, p.Publisher, p.From(), p.Hosts})
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tFROM\tHOSTS\tABOUT")
	for _, s := range list.Servers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, s.From, cmp.Or(strings.Join(s.Hosts, " "), "-"), sanitize.Line(s.Description, 60))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}
