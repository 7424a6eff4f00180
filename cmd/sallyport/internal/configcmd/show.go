package configcmd

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) show(args []string, asJSON bool) error {
	path, data, err := a.read(args)
	if err != nil {
		return err
	}
	root, err := config.Sources{Getenv: a.Env}.Effective(path, data)
	if err != nil {
		return &cli.ConfigError{Err: err}
	}
	if asJSON {
		return a.showJSON(root)
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("show config: %w", err)
	}
	text := bytes.NewBufferString("# " + path + "; relative paths start at its directory\n")
	enc := yaml.NewEncoder(text)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("show config: %w", err)
	}
	return a.Print(text.String())
}

func (a *app) showJSON(root *yaml.Node) error {
	var all map[string]any
	if err := root.Decode(&all); err != nil {
		return fmt.Errorf("show config: %w", err)
	}
	return a.PrintJSON(all)
}
