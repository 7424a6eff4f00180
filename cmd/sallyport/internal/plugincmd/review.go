package plugincmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/plugin"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

func listCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "list the plugins, and why some do not run",
		Long: `List shows the plugins next to the settings: ready, held until somebody approves
them, or off. If a gateway runs with them, it says whether they work there.`,
		Example: "  sallyport plugin list",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// listJSON is what list --json prints.
type listJSON struct {
	Plugins []listed `json:"plugins"`
}

// listed is a plugin with its state.
type listed struct {
	plugin.Plugin
	// Running says that the state is that in a running gateway.
	Running bool `json:"running"`
}

func (a *app) list(ctx context.Context, asJSON bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	inspected, err := plugin.Inspect(cfg)
	if err != nil {
		return usage(err)
	}
	all := []listed{}
	for _, p := range inspected {
		all = append(all, listed{Plugin: p})
	}
	if a.DataDir() != "" && len(all) > 0 {
		if err := a.WithGateways(ctx, func(ctx context.Context, c *cli.Gateways) error { return fromGateways(ctx, c, all) }); err != nil {
			return err
		}
	}
	switch {
	case asJSON:
		return a.PrintJSON(listJSON{all})
	case len(all) == 0:
		a.Say("there is no plugin in " + dir(cfg))
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVERSION\tSTATUS\tOFFERS")
	for _, p := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", cli.Cell(p.Name, 40), cli.Cell(p.Version, 32), p.Status, cli.Cell(strings.Join(p.Offers, "; "), 100))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, p := range all {
		where := ""
		if p.Running {
			where = " in the running gateway"
		}
		if p.Reason != "" {
			fmt.Fprintf(&b, "%s is %s%s: %s\n", p.Name, p.Status, where, sanitize.Line(p.Reason, 400))
		}
	}
	return a.Print(b.String())
}

// fromGateways sets the states of plugins to those in the gateways that run with them. Of several the first counts in which
// a plugin does not work.
func fromGateways(ctx context.Context, c *cli.Gateways, all []listed) error {
	return cli.GetFromAll(ctx, c, "/plugins", func(got httpapi.PluginList) {
		for _, p := range got.Plugins {
			i := slices.IndexFunc(all, func(l listed) bool { return l.Name == p.Name && l.Folder == p.Folder })
			if i >= 0 && (!all[i].Running || all[i].Status == plugin.Ready) {
				all[i].Status, all[i].Reason, all[i].Running = p.Status, p.Reason, true
			}
		}
	})
}

func reviewCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "review [flags] NAME...",
		Short: "show what plugins offer and ask for, and which files changed",
		Long: `Review shows what a plugin offers, what is refused while it does not run, what it
asks for, and how its files changed since it was approved on this machine. Read the
whole files with an editor, then approve it.`,
		Example: "  sallyport plugin review shop",
		Args:    names,
		RunE:    func(_ *cobra.Command, args []string) error { return a.review(args, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// reviewJSON is what review --json prints.
type reviewJSON struct {
	Plugins []reviewed `json:"plugins"`
}

// reviewed is what an operator reads of a plugin before it runs.
type reviewed struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Folder  string   `json:"folder"`
	Offers  []string `json:"offers"`
	Guards  []string `json:"guards"`
	Asks    []string `json:"asks"`
	// Approved means that it may run as it is now. Changes are the files that changed since it was approved, if it was.
	Approved bool     `json:"approved"`
	Changes  []string `json:"changes"`
	// Diffs are unified diffs of those files, as far as this machine has them as they were approved.
	Diffs []fileDiff `json:"diffs"`
	known bool
}

func (a *app) review(list []string, asJSON bool) error {
	all := reviewJSON{[]reviewed{}}
	for _, name := range list {
		cfg, p, err := a.load(name)
		if err != nil {
			return err
		}
		lock, err := folder.ReadLock(dir(cfg))
		if err != nil {
			return usage(err)
		}
		before, known := lock[name]
		r := reviewed{Name: p.Name, Version: p.Version, Folder: p.Dir, Offers: append([]string{}, p.Offers()...), Guards: append([]string{}, p.Guards()...), Asks: append([]string{}, p.Asks()...), Changes: []string{}, known: known}
		if known {
			r.Changes = append([]string{}, p.Changes(before)...)
			r.Diffs = copies{a.CacheDir()}.diffs(p, before)
		}
		r.Approved = known && len(r.Changes) == 0
		all.Plugins = append(all.Plugins, r)
	}
	if asJSON {
		return a.PrintJSON(all)
	}
	for _, r := range all.Plugins {
		if err := a.Print(r.text()); err != nil {
			return err
		}
	}
	return nil
}

func (p reviewed) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, in %s\n", p.Name, p.Version, p.Folder)
	part := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "%s:\n", title)
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", sanitize.Line(line, 300))
		}
	}
	part("offers", p.Offers)
	part("guards", p.Guards)
	part("asks for", p.Asks)
	switch {
	case !p.known:
		b.WriteString("nobody has approved it\n")
	case !p.Approved:
		part("changed since it was approved", p.Changes)
		for _, d := range p.Diffs {
			b.WriteString("\n" + d.text())
		}
		b.WriteString("\n")
	default:
		b.WriteString("approved\n")
		return b.String()
	}
	fmt.Fprintf(&b, "to approve it: sallyport plugin approve %s\n", p.Name)
	return b.String()
}

func approveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "approve NAME...",
		Short: "let plugins run as they are now",
		Long: `Approve starts a plugin in a sandbox, compares its code with its manifest, and
writes the digests of its files to plugins/plugins.lock.`,
		Example: "  sallyport plugin approve shop",
		Args:    names,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.approve(cmd.Context(), args) },
	}
}

func (a *app) approve(ctx context.Context, list []string) error {
	for _, name := range list {
		cfg, p, err := a.load(name)
		if err != nil {
			return err
		}
		if err := a.try(ctx, cfg, p, func(t *plugin.Trial) error {
			digest, err := t.Offer(ctx)
			if err != nil {
				return err
			}
			return a.record(p, digest)
		}); err != nil {
			return err
		}
		a.Say(fmt.Sprintf("approved %s %s: %s", name, p.Version, strings.Join(p.Offers(), "; ")))
	}
	return nil
}

// record approves a plugin, and keeps copies of its files for the next review.
func (a *app) record(p folder.Plugin, offer string) error {
	lock, err := folder.ReadLock(filepath.Dir(p.Dir))
	if err != nil {
		return err
	}
	if err := folder.Approve(p, offer); err != nil {
		return err
	}
	copies{a.CacheDir()}.save(p, lock[p.Name])
	return nil
}

func testCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [flags] NAME...",
		Short: "run the tests of plugins in a sandbox",
		Long: `Test starts a plugin in a sandbox, approved or not, compares its code with its
manifest, and runs the tests of its tests.yaml: a list of calls, each with "run",
"with", and "want" or "error".

Exit status: 0 all pass; 1 one fails.`,
		Example: "  sallyport plugin test shop",
		Args:    names,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.test(cmd.Context(), args, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// testsJSON is what test --json prints.
type testsJSON struct {
	Tests []testJSON `json:"tests"`
}

// testJSON is a test that ran. Problem is "" if it passed.
type testJSON struct {
	Plugin  string `json:"plugin"`
	Line    int    `json:"line"`
	Run     string `json:"run"`
	Problem string `json:"problem,omitempty"`
}

func (a *app) test(ctx context.Context, list []string, asJSON bool) error {
	failed, all := 0, testsJSON{[]testJSON{}}
	for _, name := range list {
		cfg, p, err := a.load(name)
		if err != nil {
			return err
		}
		tests, err := p.Tests()
		if err != nil {
			return usage(err)
		}
		if err := a.try(ctx, cfg, p, func(t *plugin.Trial) error {
			for _, one := range tests {
				wrong := runTest(ctx, t, one)
				all.Tests = append(all.Tests, testJSON{name, one.Line, one.Run, wrong})
				if wrong != "" {
					failed++
				}
				if wrong != "" && !asJSON {
					if err := a.Print(fmt.Sprintf("%s:%d: %s %s\n", folder.TestsName, one.Line, one.Run, sanitize.Line(wrong, 600))); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			return err
		}
		a.Say(fmt.Sprintf("%s: %s", name, cli.Count(len(tests), "test")))
	}
	if asJSON {
		if err := a.PrintJSON(all); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &tool.Error{Kind: tool.Failed, Message: cli.Count(failed, "test") + " failed"}
	}
	return nil
}

// runTest returns what is wrong, "" for a test that passes.
func runTest(ctx context.Context, t *plugin.Trial, one folder.Test) string {
	value, err := t.Call(ctx, one.Run, one.With)
	switch {
	case err != nil && one.Error == "":
		return "failed: " + err.Error()
	case err != nil && !strings.Contains(err.Error(), one.Error):
		return fmt.Sprintf("failed with another error than %q: %s", one.Error, err)
	case err == nil && one.Error != "":
		return fmt.Sprintf("returned %s, not the error %q", value, one.Error)
	case err == nil && one.Want != nil && !equal(value, one.Want):
		return fmt.Sprintf("returned %s, not %s", value, one.Want)
	}
	return ""
}

// equal reports whether two JSON values are equal.
func equal(a, b json.RawMessage) bool {
	var x, y any
	return bytes.Equal(a, b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
