package vmcmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/tool"
)

// Command returns the verb.
func Command(shared *cli.App) *cobra.Command {
	a := &app{shared}
	cmd := &cobra.Command{
		Use:   "vm COMMAND",
		Short: "run programs in a Linux virtual machine, on macOS and Windows",
		Long: `Vm has a small Debian in a virtual machine run the programs of models in gVisor:
by Lima on macOS, by WSL on Windows. The gateway, its upstreams and its credentials
stay on this machine; the virtual machine sees no folder of it.`,
		Example: "  sallyport vm up\n  sallyport vm status",
	}
	var o options
	cmd.PersistentFlags().StringVar(&o.name, "name", "sallyport", "the `NAME` of the virtual machine")
	cmd.PersistentFlags().StringVar(&o.engine, "engine", "", "the `PROGRAM` that runs it, lima or wsl (default wsl on Windows, else lima)")
	cli.CompleteFlag(cmd, "engine", "lima", "wsl")
	return cli.Group(cmd, upCommand(a, &o), downCommand(a, &o), statusCommand(a, &o), shellCommand(a, &o))
}

// options are the flags.
type options struct {
	name, engine    string
	archive, rootfs string
	keepSettings    bool
}

// validName is a name that both engines accept, and that is no flag.
var validName = regexp.MustCompile(`^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$`)

// machine returns the virtual machine that the flags name.
func (a *app) machine(cmd *cobra.Command, o *options) (vm, error) {
	if !validName.MatchString(o.name) || len(o.name) > 60 {
		return vm{}, cli.Misuse(cmd, "the name %.80q is not of letters and digits, with ., _ or - between them", o.name)
	}
	switch {
	case o.engine == "lima", o.engine == "" && runtime.GOOS == "darwin":
		return vm{a, limaEngine(o.name)}, nil
	case o.engine == "wsl", o.engine == "" && runtime.GOOS == "windows":
		return vm{a, wslEngine(o.name)}, nil
	case o.engine == "":
		return vm{}, &tool.Error{Kind: tool.Invalid, Message: "programs run on this machine, without a virtual machine", Hint: "sallyport doctor checks it; --engine lima uses one anyway"}
	}
	return vm{}, cli.Misuse(cmd, "--engine is lima or wsl, not %.40q", o.engine)
}

func upCommand(a *app, o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up [flags]",
		Short: "make and start the virtual machine, and let programs run in it",
		Long: `Up makes the virtual machine if there is none, starts it, installs Python, Node.js
and sallyport for Linux, checks its sandboxes, and sets sandbox.remote in the
settings. It can run again: after a restart of this machine, and after an update of
sallyport, whose build must be the same on both sides.

Sallyport for Linux is the archive of this version next to this program, or --archive.`,
		Example: "  sallyport vm up\n  sallyport vm up --archive sallyport-1.2.3-linux-arm64.tar.gz",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := a.machine(cmd, o)
			if err != nil {
				return err
			}
			return v.up(cmd.Context(), *o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.archive, "archive", "", "install sallyport for Linux from `FILE`, a tar.gz of this version")
	flags.StringVar(&o.rootfs, "rootfs", "", "with WSL: import `FILE`, a tar of a Debian, in place of a download")
	flags.BoolVar(&o.keepSettings, "keep-settings", false, "do not set sandbox.remote in the settings")
	return cmd
}

func downCommand(a *app, o *options) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down [flags]",
		Short: "stop the virtual machine",
		Long: `Down stops the virtual machine; its programs end. With --delete its disk is removed
too, and sandbox.remote of the settings if it is this machine.`,
		Example: "  sallyport vm down\n  sallyport vm down --delete",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := a.machine(cmd, o)
			if err != nil {
				return err
			}
			return v.down(cmd.Context(), remove)
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "remove the virtual machine with its disk")
	return cmd
}

func statusCommand(a *app, o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "say if the virtual machine runs, and if sandboxes start in it",
		Long: `Status prints the state of the virtual machine and of its worker.

Exit status: 0 if sandboxes can start in it, 1 if not.`,
		Example: "  sallyport vm status --json",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := a.machine(cmd, o)
			if err != nil {
				return err
			}
			return v.status(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func shellCommand(a *app, o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "shell [flags] [-- COMMAND [ARG...]]",
		Short:   "run a shell or a command in the virtual machine",
		Long:    "Shell runs a shell in the virtual machine, or a command and ends with its exit status.",
		Example: "  sallyport vm shell\n  sallyport vm shell -- uname -a",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return cli.Misuse(cmd, "a command comes after --, not %.40q", args[0])
			}
			v, err := a.machine(cmd, o)
			if err != nil {
				return err
			}
			return v.enter(cmd.Context(), args)
		},
	}
}

// location is the folder of a machine's disk; only WSL needs it.
func (v vm) location() (string, error) {
	if dir, ok := v.Env("LOCALAPPDATA"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "sallyport", "vm", v.address.Host), nil
	}
	if dir := v.DataDir(); dir != "" {
		return filepath.Join(dir+"-vm", v.address.Host), nil
	}
	return "", errors.New("there is no folder for the disk of the virtual machine: set --data")
}

// step prints a step on stderr.
func (v vm) step(format string, args ...any) { v.Say(fmt.Sprintf(format, args...)) }
