package upstreamscmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/settingsfile"
	"sallyport/internal/yamledit"
)

func upstreamsEditCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "edit NAME KEY=VALUE...",
		Short: "change keys of an upstream in the settings",
		Long: `Edit sets keys of one upstream in upstreams.yaml; comments and the rest of the file
are not changed. KEY is a key of the reference of the settings, or env.NAME and
headers.NAME. VALUE is a text, or YAML in brackets; without one the key is removed.
The file is written only if the result loads. A running gateway notices.`,
		Example: `  sallyport upstreams edit files timeout=30s description="my notes"
  sallyport upstreams edit files 'args=[-y, server-filesystem, /data]'
  sallyport upstreams edit tickets 'env.TOKEN=${TICKETS_TOKEN}' exclude=`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Misuse(cmd, "edit needs the name of an upstream, and KEY=VALUE")
			}
			for _, change := range args[1:] {
				if key, _, ok := strings.Cut(change, "="); !ok || key == "" {
					return cli.Misuse(cmd, "a change must be KEY=VALUE")
				}
			}
			return a.upstreamsEdit(args[0], args[1:])
		},
	}
}

func (a *app) upstreamsEdit(name string, changes []string) error {
	err := a.changeSettings(name, func(f *settingsfile.File) error {
		for _, change := range changes {
			key, value, _ := strings.Cut(change, "=")
			keys := strings.SplitN(key, ".", 2)
			if value == "" {
				if err := f.UnsetKey(name, keys...); err != nil {
					return err
				}
				continue
			}
			text, err := yamledit.Inline(value)
			if err == nil {
				err = f.SetKey(name, text, keys...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.Print(fmt.Sprintf("changed %s; try it: sallyport upstreams test %s", name, name))
}

// changeSettings changes an upstream in the settings file.
func (a *app) changeSettings(name string, change func(f *settingsfile.File) error) error {
	f, err := a.EditSettings()
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return editError(f, name, err)
	}
	return f.Save()
}

// upstreamsSwitchCommand returns enable or disable.
func upstreamsSwitchCommand(a *app, disable bool) *cobra.Command {
	verb, long := "enable", "Enable removes disabled: true of upstreams in upstreams.yaml; the rest of the file is\nnot changed. A running gateway notices."
	if disable {
		verb, long = "disable", "Disable sets disabled: true of upstreams in upstreams.yaml; the rest of the file is\nnot changed. A running gateway notices, and ends their processes."
	}
	return &cobra.Command{
		Use:     verb + " NAME...",
		Short:   verb + " upstreams in the settings",
		Long:    long,
		Example: "  sallyport upstreams " + verb + " files",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				return cli.Misuse(cmd, "%s needs the name of an upstream", verb)
			}
			for _, name := range names {
				if err := a.changeSettings(name, func(f *settingsfile.File) error { return setDisabled(f, name, disable) }); err != nil {
					return err
				}
				if err := a.Print(verb + "d " + name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func setDisabled(f *settingsfile.File, name string, disabled bool) error {
	if disabled {
		return f.SetKey(name, "true", "disabled")
	}
	return f.UnsetKey(name, "disabled")
}
