package configcmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
)

func showCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [flags] [FILE]",
		Short: "print the settings in force, without secrets",
		Long: `Show prints the settings in force: what FILE, or the file that every command reads,
says, and the defaults, each marked with "# default". References have their values;
secrets are hidden, and references to them stay.`,
		Example: `  sallyport config show
  sallyport config show --json | jq .sandbox`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return a.show(args, asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) show(args []string, asJSON bool) error {
	path, data, err := a.read(args)
	if err != nil {
		return err
	}
	doc, err := config.Sources{Getenv: a.Env}.Effective(path, data)
	if err != nil {
		return &cli.ConfigError{Err: err}
	}
	if asJSON {
		return a.showJSON(doc)
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("show config: %w", err)
	}
	text, err := doc.Text()
	if err != nil {
		return err
	}
	return a.Print("# " + path + "; relative paths start at its directory\n" + text)
}

func (a *app) showJSON(doc config.Document) error {
	all, err := doc.Values()
	if err != nil {
		return err
	}
	return a.PrintJSON(all)
}
