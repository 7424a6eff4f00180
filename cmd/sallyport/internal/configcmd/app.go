// Package configcmd has the verbs that check, show and migrate the settings: config and upgrade.
package configcmd

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// app has the verbs of this package.
type app struct{ *cli.App }

// Command returns the verb config.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "config COMMAND",
		Short: "check, show and migrate the settings",
		Long: `Config checks, shows and migrates upstreams.yaml, and prints its schema for editors.
It starts nothing.`,
		Example: `  sallyport config check
  sallyport config show --json
  sallyport config migrate --dry-run`,
	}
	return cli.Group(cmd, checkCommand(a), showCommand(a), schemaCommand(a), migrateCommand(a))
}

func schemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of the settings, for editors",
		Long: `Schema prints the JSON Schema (2020-12) of upstreams.yaml. Editors that know the YAML
language server check and complete a file that begins with the comment
# yaml-language-server: $schema=PATH`,
		Example: "  sallyport config schema > upstreams.schema.json",
		Args:    cli.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return cli.Write(a.Stdout, string(config.Schema())) },
	}
}

// oneFile returns an error for more than one argument.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Misuse(cmd, "%s takes one FILE, not %d", cmd.Name(), len(args))
	}
	return nil
}

// read reads the settings file that the arguments name, or else the one that every command reads.
func (a *app) read(args []string) (path string, data []byte, err error) {
	if len(args) > 0 {
		path = args[0]
	} else if path, err = settingsfile.Find(a.ConfigPath, a.Env); err != nil {
		return "", nil, &cli.ConfigError{Err: err}
	}
	if data, err = yamlstrict.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil, &tool.Error{Kind: tool.Invalid, Message: "there is no file " + path, Hint: "correct the path, or make it: sallyport init --config " + path, Err: err}
	}
	if err != nil {
		return path, nil, &cli.ConfigError{Err: err}
	}
	return path, data, nil
}
