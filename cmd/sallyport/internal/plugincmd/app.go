// Package plugincmd has the verb that makes, reviews and tests plugins.
package plugincmd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/executor"
	"sallyport/gateway/plugin"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/config"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

//go:embed template
var templates embed.FS

// app has the verbs of this package.
type app struct{ *cli.App }

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "plugin COMMAND",
		Short: "make, review, test and remove plugins",
		Long: `Plugin manages the folder plugins/ next to upstreams.yaml. A plugin is a folder
with a manifest, plugin.yaml, and code in Python or TypeScript, which runs in a
sandbox. It offers tools, hooks around calls, recognizers of personal data, checks
of programs, steps of workflows, and renderers of results.

A plugin runs when it was approved, and until one of its files changes. Until it is
approved again, what it guards is refused. A running gateway notices.`,
		Example: `  sallyport plugin new shop
  sallyport plugin test shop
  sallyport plugin approve shop
  sallyport plugin list`,
	}
	return cli.Group(cmd, newCommand(a), addCommand(a), listCommand(a), reviewCommand(a), approveCommand(a), testCommand(a), removeCommand(a))
}

// dir returns the folder of the plugins.
func dir(cfg *config.Config) string { return filepath.Join(cfg.Dir, folder.DirName) }

// load reads the settings and one plugin.
func (a *app) load(name string) (*config.Config, folder.Plugin, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, folder.Plugin{}, err
	}
	if !folder.ValidName(name) {
		return nil, folder.Plugin{}, nameError(name)
	}
	p, err := folder.Read(filepath.Join(dir(cfg), name))
	if errors.Is(err, os.ErrNotExist) {
		err = &tool.Error{Kind: tool.NotFound, Message: "there is no plugin " + name + " in " + dir(cfg), Hint: "sallyport plugin list"}
	}
	return cfg, p, usage(err)
}

// usage makes an error of a file one of the settings, with their exit status.
func usage(err error) error {
	if _, ok := errors.AsType[*tool.Error](err); err == nil || ok {
		return err
	}
	return &cli.ConfigError{Err: err}
}

func nameError(name string) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(`%.40q cannot name a plugin: small letters, digits and "_", first a letter, at most 40`, name)}
}

// try runs one plugin in a sandbox.
func (a *app) try(ctx context.Context, cfg *config.Config, p folder.Plugin, use func(t *plugin.Trial) error) (err error) {
	if err := cli.Platform(cfg); err != nil {
		return err
	}
	settings := &atomic.Pointer[config.Config]{}
	settings.Store(cfg)
	sandboxes := executor.NewSandboxes(executor.SandboxOptions{Settings: settings, Logger: a.Logger(logLevel), Version: cli.BuildVersion(), NoPool: true})
	defer func() { err = errors.Join(err, sandboxes.Close()) }()
	if err := sandboxes.Publish(func() map[string][]byte { return nil }); err != nil {
		return err
	}
	t := plugin.NewTrial(cfg, p, func(s sandbox.Service) (plugin.Conn, error) { return sandboxes.Serve(s) }, a.CacheDir())
	defer t.Close()
	if _, err := t.Offer(ctx); err != nil {
		return &tool.Error{Kind: tool.Failed, Message: err.Error()}
	}
	return use(t)
}

// names checks the arguments of a command, which are names of plugins.
func names(cmd *cobra.Command, args []string) error { return cli.SomeNames("name")(cmd, args) }
