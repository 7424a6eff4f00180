package plugincmd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/plugin/folder"
	"sallyport/internal/tool"
)

const logLevel = slog.LevelError

func newCommand(a *app) *cobra.Command {
	var script bool
	cmd := &cobra.Command{
		Use:   "new [flags] NAME",
		Short: "make a plugin with one tool, to be edited",
		Long: `New makes the folder plugins/NAME with a manifest, code with one tool, and a test.
It does not run before it is approved.`,
		Example: `  sallyport plugin new shop
  sallyport plugin new --typescript shop`,
		Args: cli.OneName,
		RunE: func(_ *cobra.Command, args []string) error { return a.makeNew(args[0], script) },
	}
	cmd.Flags().BoolVar(&script, "typescript", false, "write it in TypeScript; default Python")
	return cmd
}

func (a *app) makeNew(name string, script bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	if !folder.ValidName(name) {
		return nameError(name)
	}
	code := "main.py"
	if script {
		code = "main.ts"
	}
	files := map[string][]byte{}
	for _, file := range []string{folder.ManifestName, code, folder.TestsName} {
		data, err := templates.ReadFile(path.Join("template", file))
		if err != nil {
			return err
		}
		files[file] = []byte(strings.ReplaceAll(string(data), "NAME", name))
	}
	at := filepath.Join(dir(cfg), name)
	if err := writeNew(at, files); err != nil {
		return err
	}
	a.Say(fmt.Sprintf("wrote %s; edit %s, then: sallyport plugin test %s && sallyport plugin approve %s", at, code, name, name))
	return nil
}

// writeNew writes the files of a plugin into a folder, which must not exist. It leaves nothing after an error.
func writeNew(at string, files map[string][]byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(at, 0o755); errors.Is(err, os.ErrExist) {
		return &tool.Error{Kind: tool.Invalid, Message: at + " exists already", Hint: "remove it first: sallyport plugin remove " + filepath.Base(at)}
	} else if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(at)
		}
	}()
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, data := range files {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func addCommand(a *app) *cobra.Command {
	var approved bool
	cmd := &cobra.Command{
		Use:   "add [flags] FOLDER",
		Short: "copy a plugin from a folder, and show what it offers and asks for",
		Long: `Add copies the plugin in FOLDER to plugins/ and shows what it offers, what it guards
and what it asks for. It does not run before it is approved.`,
		Example: `  sallyport plugin add ~/src/shop
  sallyport plugin add --approve ~/src/shop`,
		Args: cli.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.add(args[0])
			if err == nil && approved {
				return a.approve(cmd.Context(), []string{name})
			}
			if err == nil {
				err = a.review([]string{name}, false)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&approved, "approve", false, "approve it at once")
	return cmd
}

// add copies a plugin and returns its name.
func (a *app) add(from string) (string, error) {
	cfg, err := a.Load()
	if err != nil {
		return "", err
	}
	if from, err = filepath.Abs(from); err != nil {
		return "", err
	}
	p, err := folder.Read(from)
	if err != nil {
		return "", usage(err)
	}
	return p.Name, writeNew(filepath.Join(dir(cfg), p.Name), p.Content)
}

func removeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME...",
		Short:   "remove plugins, and what they guard",
		Long:    "Remove deletes the folders of plugins, and their lines in plugins.lock.",
		Example: "  sallyport plugin remove shop",
		Args:    names,
		RunE:    func(_ *cobra.Command, args []string) error { return a.remove(args) },
	}
}

func (a *app) remove(list []string) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	lock, err := folder.ReadLock(dir(cfg))
	if err != nil {
		return usage(err)
	}
	for _, name := range list {
		at := filepath.Join(dir(cfg), name)
		_, locked := lock[name]
		_, missing := os.Lstat(at)
		switch {
		case !folder.ValidName(name):
			return nameError(name)
		case missing != nil && !locked:
			return &tool.Error{Kind: tool.NotFound, Message: "there is no plugin " + name + " in " + dir(cfg), Hint: "sallyport plugin list"}
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		if locked {
			if err := folder.Forget(dir(cfg), name); err != nil {
				return err
			}
		}
		a.Say("removed " + at)
	}
	return nil
}
