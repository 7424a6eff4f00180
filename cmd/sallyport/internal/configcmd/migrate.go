package configcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/atomicfile"
	"sallyport/internal/settingsfile"
)

func migrateCommand(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "migrate [flags] [FILE]",
		Short: "rewrite old keys of the settings, and those of other programs",
		Long: `Migrate rewrites keys of earlier releases and of other programs in FILE, or in the
settings that every command reads, to the keys of this release, and prints what it
changed. Comments and everything else stay as they are. A second time it changes
nothing. The servers of a client's own file are for sallyport import.`,
		Example: "  sallyport config migrate --dry-run\n  sallyport config migrate upstreams.yaml",
		Args:    oneFile,
		RunE:    func(_ *cobra.Command, args []string) error { return a.migrate(args, dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and write nothing")
	return cmd
}

func (a *app) migrate(args []string, dryRun bool) error {
	path, data, err := a.read(args)
	if err != nil {
		return err
	}
	made, changes, err := settingsfile.Migrate(path, data)
	if err != nil {
		return &cli.ConfigError{Err: err}
	}
	if len(changes) == 0 {
		return a.Print(path + ": nothing to change")
	}
	if !dryRun {
		if _, err := atomicfile.Write(path, data, made, nil); err != nil {
			return fmt.Errorf("migrate settings: %w", err)
		}
	}
	if err := a.Print(changesText(path, changes)); err != nil {
		return err
	}
	a.Say(afterwards(dryRun))
	return nil
}

func changesText(path string, changes []settingsfile.Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s:%d: %s\n", path, c.Line, c.Text)
	}
	return b.String()
}

func afterwards(dryRun bool) string {
	if dryRun {
		return "nothing was written; without --dry-run the file is rewritten"
	}
	return "the file is rewritten; see what is left with sallyport config check"
}
