package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/accesscmd"
	"sallyport/cmd/sallyport/internal/auditcmd"
	"sallyport/cmd/sallyport/internal/benchcmd"
	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/clientscmd"
	"sallyport/cmd/sallyport/internal/clustercmd"
	"sallyport/cmd/sallyport/internal/configcmd"
	"sallyport/cmd/sallyport/internal/doctorcmd"
	"sallyport/cmd/sallyport/internal/environmentscmd"
	"sallyport/cmd/sallyport/internal/examplecmd"
	"sallyport/cmd/sallyport/internal/initcmd"
	"sallyport/cmd/sallyport/internal/plugincmd"
	"sallyport/cmd/sallyport/internal/server"
	"sallyport/cmd/sallyport/internal/taskcmd"
	"sallyport/cmd/sallyport/internal/toolscmd"
	"sallyport/cmd/sallyport/internal/topcmd"
	"sallyport/cmd/sallyport/internal/upstreamscmd"
	"sallyport/cmd/sallyport/internal/vmcmd"
	"sallyport/cmd/sallyport/internal/workflowcmd"
)

// app implements the verbs of this package.
type app struct{ *cli.App }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "sallyport [flags] COMMAND",
		Short: "one MCP server in front of many",
		Long: `Sallyport is one MCP server that stands in front of many: a model finds the
tools of all of them with search_tools and calls them from a program that
execute_code runs in a gVisor sandbox. upstreams.yaml says which servers.`,
		Example: `  sallyport doctor                      check this machine and the settings
  sallyport search "read a file"        find tools as a model would
  sallyport exec report.py              run a program as a model would
  claude mcp add sallyport -- sallyport serve --share --config "$PWD/upstreams.yaml"`,
		Version:           cli.BuildVersion(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.checkFirst(cmd) },
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetVersionTemplate("sallyport {{.Version}}\n")
	root.SetHelpFunc(printHelp)
	root.SetFlagErrorFunc(cli.FlagError)
	root.Flags().Bool("version", false, "print the version")
	flags := root.PersistentFlags()
	flags.StringVar(&a.ConfigPath, "config", "", "read `FILE` (default $SALLYPORT_CONFIG, ./upstreams.yaml,\n~/.config/sallyport/upstreams.yaml)")
	flags.StringVar(&a.DataPath, "data", "", "keep workspaces and records in `DIR` (default\n$XDG_DATA_HOME/sallyport, ~/.local/share/sallyport)")
	flags.StringVar(&a.LogLevel, "log-level", "", "log to stderr from `LEVEL` on: debug, info, warn, error\n(default info for serve, error for all else)")
	cli.CompleteFlag(root, "log-level", "debug", "info", "warn", "error")
	cli.Group(root, server.ServeCommand(a.App), execCommand(a), toolscmd.CallCommand(a.App), toolscmd.SearchCommand(a.App), toolscmd.ToolsCommand(a.App), toolscmd.GenerateCommand(a.App), doctorcmd.Command(a.App), versionCommand(a),
		upstreamscmd.Command(a.App), upstreamscmd.AddCommand(a.App), configcmd.Command(a.App), configcmd.UpgradeCommand(a.App), server.WorkerCommand(a.App), upstreamscmd.AuthCommand(a.App), clientscmd.ImportCommand(a.App), clientscmd.InstallCommand(a.App), skillsCommand(a), backupCommand(a), restoreCommand(a),
		accesscmd.ApprovalsCommand(a.App), auditcmd.ExecutionsCommand(a.App), auditcmd.ExplainCommand(a.App), auditcmd.LogCommand(a.App), accesscmd.PolicyCommand(a.App), accesscmd.BudgetsCommand(a.App), accesscmd.AlertsCommand(a.App), workflowcmd.Command(a.App), taskcmd.RunCommand(a.App), taskcmd.TasksCommand(a.App), benchcmd.Command(a.App), examplecmd.Command(a.App), manCommand(a), topcmd.Command(a.App), accesscmd.TokenCommand(a.App), server.DashboardCommand(a.App), environmentscmd.Command(a.App), plugincmd.Command(a.App), vmcmd.Command(a.App), clustercmd.Command(a.App))
	root.AddCommand(initcmd.InitCommand(a.App), initcmd.TryCommand(a.App), initcmd.SampleCommand(a.App))
	root.SetHelpCommand(helpCommand(root))
	configureCompletion(root)
	a.addCompletions(root)
	return root
}

// checkFirst is run before each command: it checks the global flags, and that a newer sallyport did not write the data directory.
func (a *app) checkFirst(cmd *cobra.Command) error {
	if err := a.CheckLevel(); err != nil || !opensData(cmd) {
		return err
	}
	return a.CheckDataVersion()
}

// opensData reports whether a command opens the data directory of the user.
func opensData(cmd *cobra.Command) bool {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()) + " "
	return !cmd.Hidden && !slices.ContainsFunc(withoutData(), func(name string) bool { return strings.HasPrefix(path, " "+name+" ") })
}

// withoutData are the commands that do not open the data directory, and the two that report its version themselves.
func withoutData() []string {
	return []string{
		"auth", "cluster", "completion", "config", "example copy", "example list", "help", "import", "install", "man", "plugin new", "try", "version", "vm", "worker", "workflow schema",
		"doctor", "upgrade",
	}
}

// configureCompletion replaces the texts of cobra's completion command.
func configureCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cli.Group(cmd).Short = "print the completion script of a shell"
		cmd.Use = "completion COMMAND"
		for _, shell := range cmd.Commands() {
			shell.Args = cli.NoArguments
			shell.Short = "print the completion script of " + shell.Name()
			shell.Long, shell.Example = completionText(shell.Name())
		}
	}
}

// completionText returns the help of a shell's completion script.
func completionText(shell string) (long, example string) {
	place := map[string]string{
		"bash":       "~/.local/share/bash-completion/completions/sallyport",
		"zsh":        `"${fpath[1]}/_sallyport"`,
		"fish":       "~/.config/fish/completions/sallyport.fish",
		"powershell": "sallyport.ps1",
	}[shell]
	long = "Print the script by which " + shell + " completes commands, flags, and names that only the settings\nor a running gateway know: of upstreams, workspaces, skills, workflows, executions."
	return long, "  sallyport completion " + shell + " > " + place
}
