package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/gateway"
	"sallyport/gateway/upstream"
	"sallyport/internal/config"
	"sallyport/internal/nearest"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// app is what the verbs share: the streams and the environment of the process, and the global flags.
type app struct {
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer

	configPath string
	dataPath   string
	logLevel   string
	// remote is where sandboxes are, instead of what the settings say; only some verbs have the flag.
	remote string
}

// helpTemplate is that of every command.
const helpTemplate = `{{or .Long .Short | trimTrailingWhitespaces}}

Usage:
  {{.UseLine}}
{{- if .HasAvailableSubCommands}}

Commands:
{{- range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{- if .HasAvailableInheritedFlags}}

Global flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "sallyport [flags] COMMAND",
		Short: "one MCP server in front of many",
		Long: `Sallyport is one MCP server that stands in front of many: a model finds the
tools of all of them with search_tools and calls them from a program that
execute_code runs in a gVisor sandbox. upstreams.yaml says which servers.`,
		Example: `  sallyport doctor                      see whether all is well here
  sallyport search "read a file"        find tools as a model would
  sallyport exec report.py              run a program as a model would
  claude mcp add sallyport -- sallyport serve --share --config "$PWD/upstreams.yaml"`,
		Args:              unknownCommand,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkLevel() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			return errors.Join(cmd.Help(), status(exitUsage))
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpTemplate(helpTemplate)
	root.SetHelpFunc(quietly(root.HelpFunc()))
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "read `FILE` (default $SALLYPORT_CONFIG, ./upstreams.yaml,\n~/.config/sallyport/upstreams.yaml)")
	flags.StringVar(&a.dataPath, "data", "", "keep workspaces and records in `DIR` (default\n$XDG_DATA_HOME/sallyport, ~/.local/share/sallyport)")
	flags.StringVar(&a.logLevel, "log-level", "", "log to stderr from `LEVEL` on: debug, info, warn, error\n(default info for serve, error for all else)")
	complete(root, "log-level", "debug", "info", "warn", "error")
	root.AddCommand(serveCommand(a), execCommand(a), searchCommand(a), toolsCommand(a), generateCommand(a), doctorCommand(a), versionCommand(a),
		upstreamsCommand(a), workerCommand(a), authCommand(a), importCommand(a), installCommand(a), skillsCommand(a), backupCommand(a), restoreCommand(a),
		approvalsCommand(a), executionsCommand(a), explainCommand(a), logCommand(a), policyCommand(a), workflowCommand(a), benchCommand(a), manCommand(a), topCommand(a), tokenCommand(a), dashboardCommand(a))
	root.SetHelpCommand(helpCommand(root))
	tameCompletion(root)
	a.addCompletions(root)
	return root
}

// quietly prints a help text at once, and says nothing if its reader has gone.
func quietly(help func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		var text bytes.Buffer
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		_, _ = text.WriteTo(out)
	}
}

// tameCompletion gives cobra's own command our voice.
func tameCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short, cmd.Args = "print the completion script of a shell", unknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range cmd.Commands() {
			shell.Args = noArguments
			shell.Short = "print the completion script of " + shell.Name()
			shell.Long, shell.Example = completionText(shell.Name())
		}
	}
}

// completionText tells how a shell is given its script.
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

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "tell how a command is used",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root && len(rest) > 0 {
				return unknownCommand(root, args)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// complete offers values for a flag to the shell. It fails only for a flag that does not exist.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// levels are the words for --log-level.
func levels() map[string]slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
}

func (a *app) checkLevel() error {
	if _, ok := levels()[a.logLevel]; ok || a.logLevel == "" {
		return nil
	}
	hint := "use debug, info, warn or error"
	if near := nearest.Of(a.logLevel, []string{"debug", "info", "warn", "error"}); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown log level %.40q", a.logLevel), Hint: hint}
}

// logger writes to stderr, from the level that was asked for or else from usual on.
func (a *app) logger(usual slog.Level) *slog.Logger {
	level, ok := levels()[a.logLevel]
	if !ok {
		level = usual
	}
	return slog.New(telemetry.LogHandler(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level})))
}

// load reads the settings.
func (a *app) load() (*config.Config, error) {
	path, err := config.Find(a.configPath, a.env)
	if err != nil {
		return nil, &configError{err}
	}
	cfg, err := config.Load(path, a.env)
	if err != nil {
		return nil, &configError{err}
	}
	if a.remote == "" {
		return cfg, nil
	}
	cfg.Sandbox.Remote = a.remote
	if err := cfg.Validate(); err != nil {
		return nil, &configError{err}
	}
	return cfg, nil
}

// sandboxFlag lets a verb have its sandboxes on another machine.
func (a *app) sandboxFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.remote, "sandbox", "", "run programs on another machine, a Linux one that ssh can log in to\nand that has sallyport: `URL` is ssh://[USER@]HOST[:PORT][/PATH]\n(default sandbox.remote in upstreams.yaml, or this machine)")
}

// platform is nil where programs can run with these settings.
func platform(cfg *config.Config) error {
	if cfg.Sandbox.Remote != "" {
		return nil
	}
	return sandbox.Platform()
}

// patience is how long a command that is all about the upstreams waits for them.
const patience = 2 * time.Minute

// settle waits for the upstreams, and says for which if that takes long.
func (a *app) settle(ctx context.Context, g *gateway.Gateway) error {
	return a.waitFor(ctx, g, g.Settle)
}

func (a *app) waitFor(ctx context.Context, g *gateway.Gateway, wait func(ctx context.Context)) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait(ctx)
	}()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		if late := unsettled(g); len(late) > 0 {
			a.say("waiting for " + strings.Join(late, ", "))
		}
		<-done
	}
	return ctx.Err()
}

func unsettled(g *gateway.Gateway) []string {
	var ids []string
	for _, up := range g.Upstreams() {
		if up.State.Status == upstream.Connecting || up.State.Status == upstream.Idle && !up.Cached {
			ids = append(ids, up.ID)
		}
	}
	return ids
}

// problem says why an upstream is not available, "" if it is, or would be when it is called.
func problem(up gateway.Upstream) string {
	switch {
	case up.State.Status == upstream.Ready, up.State.Error == "" && up.Known:
		return ""
	case up.State.Error != "":
		return clean(up.State.Error)
	}
	return "still connecting to upstream " + up.ID
}

// standing is the state of an upstream in a word or two.
func standing(up gateway.Upstream) string {
	if up.Cached && (up.State.Status == upstream.Idle) {
		return "cached, not started"
	}
	return string(up.State.Status)
}

// number writes how many of what there are: "1 tool", "2 tools".
func number(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
