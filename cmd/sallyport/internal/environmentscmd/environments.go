package environmentscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/environments"
	"sallyport/internal/adminsock"
	"sallyport/internal/tool"
)

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "environments COMMAND",
		Short: "see and remove stored images and packages",
		Long: `Environments shows and removes what the environments of the settings are made
of, and what models have installed: images and packages in the cache directory,
$XDG_CACHE_HOME/sallyport or ~/.cache/sallyport. All gateways of a user share it.
What was removed is fetched again when an environment needs it.`,
		Example: `  sallyport environments list
  sallyport environments prune --unused 7d --dry-run`,
	}
	return cli.Group(cmd, listCommand(a), pruneCommand(a))
}

func listCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "list stored images and packages",
		Long: `List shows the stored images, and the packages for Python and TypeScript, with
the disk space that they take and when they were last used. A running gateway
notes the use once a day.`,
		Example: "  sallyport environments list",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// listJSON is what list --json prints.
type listJSON struct {
	Environments []environments.Stored `json:"environments"`
}

func (a *app) list(ctx context.Context, asJSON bool) error {
	dir, err := a.cacheDir()
	if err != nil {
		return err
	}
	all, err := environments.List(ctx, dir)
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.PrintJSON(listJSON{all})
	case len(all) == 0:
		a.Say("no images and no packages are stored")
		return nil
	}
	return a.printTable(all)
}

func pruneCommand(a *app) *cobra.Command {
	var unused string
	var dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "remove images and packages that are not in use",
		Long: `Prune removes images, packages and checkpoints of isolated upstreams that were
not used for 30 days, or the time of --unused, and prints them and the disk
space that is freed. It keeps what a running gateway uses. While a gateway runs, the time is at least 48h.`,
		Example: `  sallyport environments prune
  sallyport environments prune --unused 7d --dry-run`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, ok := cli.ParseSpan(cmp.Or(unused, "30d"))
			if !ok {
				return cli.Misuse(cmd, "--unused is a time, such as 7d or 48h")
			}
			return a.prune(cmd.Context(), environments.PruneOptions{Unused: age, DryRun: dryRun}, asJSON)
		},
	}
	cmd.Flags().StringVar(&unused, "unused", "", "remove what was not used for `TIME`, such as 7d or 48h (default 30d)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would be removed")
	cli.JSONFlag(cmd, &asJSON)
	cli.CompleteFlag(cmd, "unused", "7d", "30d", "90d")
	return cmd
}

// pruneJSON is what prune --json prints.
type pruneJSON struct {
	Removed []environments.Stored `json:"removed"`
	Bytes   int64                 `json:"bytes"`
	DryRun  bool                  `json:"dry_run"`
}

func (a *app) prune(ctx context.Context, opts environments.PruneOptions, asJSON bool) error {
	dir, err := a.cacheDir()
	if err != nil {
		return err
	}
	opts.Logger = a.Logger(slog.LevelError)
	opts.GatewayRuns = a.DataDir() != "" && len(adminsock.Sockets(a.DataDir())) > 0
	removed, err := environments.Prune(ctx, dir, opts)
	if errors.Is(err, environments.ErrInUse) {
		return &tool.Error{Kind: tool.Invalid, Message: "a gateway runs, and may use what was unused for less than 48h", Hint: "use --unused 48h or longer, or stop sallyport first", Err: err}
	}
	got := pruneJSON{Removed: removed, DryRun: opts.DryRun}
	for _, one := range removed {
		got.Bytes += one.Bytes
	}
	return errors.Join(a.printRemoved(got, asJSON), err)
}

// printRemoved prints what was removed, or would be.
func (a *app) printRemoved(got pruneJSON, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(got)
	}
	if len(got.Removed) > 0 {
		if err := a.printTable(got.Removed); err != nil {
			return err
		}
	}
	format := "removed %s, freed %s"
	if got.DryRun {
		format = "would remove %s, and free %s"
	}
	a.Say(fmt.Sprintf(format, countStored(got.Removed), formatBytes(got.Bytes)))
	return nil
}

// countStored counts images and layers.
func countStored(all []environments.Stored) string {
	images, checkpoints := 0, 0
	for _, one := range all {
		switch one.Kind {
		case environments.KindImage:
			images++
		case environments.KindCheckpoint:
			checkpoints++
		}
	}
	text := cli.Count(images, "image") + " and " + cli.Plural(len(all)-images-checkpoints, "set of packages", "sets of packages")
	if checkpoints > 0 {
		text += ", " + cli.Count(checkpoints, "checkpoint")
	}
	return text
}

func (a *app) printTable(all []environments.Stored) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tID\tSIZE\tLAST USE\tNAME")
	for _, one := range all {
		used := cli.Age(one.Used) + " ago"
		if one.InUse {
			used = "now"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(one.Kind, "damaged"), cli.Cell(one.ID[:min(len(one.ID), 12)], 12), formatBytes(one.Bytes), used, cli.Cell(shortDigest(one.Name), 120))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return a.Print(b.String())
}

// longDigest matches the part of an image's digest that a table leaves out.
var longDigest = regexp.MustCompile(`(@sha256:[0-9a-f]{12})[0-9a-f]{52}$`)

func shortDigest(reference string) string { return longDigest.ReplaceAllString(reference, "$1...") }

// formatBytes formats a size with three digits.
func formatBytes(n int64) string {
	size, unit := float64(n), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for size >= 1000 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return fmt.Sprintf("%.3g %s", size, units[unit])
}

// cacheDir returns the cache directory, or an error if there is none.
func (a *app) cacheDir() (string, error) {
	dir := a.CacheDir()
	if dir == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "there is no cache directory", Hint: "set HOME or XDG_CACHE_HOME"}
	}
	return dir, nil
}
