package clientscmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/atomicfile"
	"sallyport/internal/clients"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
	"sallyport/internal/weburl"
)

// installFlags holds the flags of install.
type installFlags struct {
	project, dryRun, replace, keep bool
	// url is the MCP endpoint of a gateway over HTTP, "" to start sallyport; tokenVariable has its token.
	url, tokenVariable string
}

// InstallCommand returns the verb.
func InstallCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var opts installFlags
	cmd := &cobra.Command{
		Use:   "install CLIENT [flags]",
		Short: "put sallyport into the settings of a client",
		Long: `Install adds the one server "sallyport" to the settings of a client, one of
` + clientNames() + `.
The rest of the file, including comments, is not changed. A backup of the file is
written next to it, as FILE.backup-DATE-TIME; to undo, move that back.

Servers of the client that upstreams.yaml also has (see sallyport import) are then
reached through sallyport. On a terminal, install asks whether to remove their own
entries; otherwise they stay, unless --replace is given.

With --url, the client connects to a gateway that serves over HTTP instead of starting
one, and logs in there, or sends the token in the variable of --token-variable.`,
		Example: `  sallyport install cursor --dry-run
  sallyport install claude-code --replace
  sallyport install claude-code --url https://gateway.example.com/mcp`,
		ValidArgs: clientList(),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return cli.Misuse(cmd, "install needs the name of one client: %s", clientNames())
			case opts.replace && opts.keep:
				return cli.Misuse(cmd, "--replace and --keep exclude each other")
			case opts.url != "" && opts.replace:
				return cli.Misuse(cmd, "--replace and --url exclude each other: the servers of another gateway are not known")
			case opts.url == "" && opts.tokenVariable != "":
				return cli.Misuse(cmd, "--token-variable needs --url")
			}
			return a.install(cmd.Context(), args[0], opts)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opts.project, "project", false, "use the settings of the project in this directory, not the user's")
	flags.BoolVar(&opts.dryRun, "dry-run", false, "print which lines would change, and write nothing")
	flags.BoolVar(&opts.replace, "replace", false, "remove the servers that are in upstreams.yaml")
	flags.BoolVar(&opts.keep, "keep", false, "leave the servers that are in upstreams.yaml, and do not ask")
	flags.StringVar(&opts.url, "url", "", "connect to a gateway at this `URL`, such as https://gateway.example.com/mcp")
	flags.StringVar(&opts.tokenVariable, "token-variable", "", "environment variable of the client with a token for --url, such as SALLYPORT_TOKEN (`NAME`)")
	return cmd
}

func (a *app) install(ctx context.Context, name string, opts installFlags) error {
	c, ok := clients.Find(name)
	if !ok {
		return unknownClient(name)
	}
	p, err := a.system()
	if err != nil {
		return err
	}
	file := c.UserFile(p)
	if opts.project {
		if file = c.ProjectFile(p); file == "" {
			return &tool.Error{Kind: tool.Invalid, Message: c.Title + " has no settings of a project", Hint: "leave --project out"}
		}
	}
	us, settings, err := a.self(opts)
	if err != nil {
		return err
	}
	e, err := editClient(c, p, file, us, settings)
	if err != nil {
		return fmt.Errorf("%s %w", file, err)
	}
	if opts.dryRun {
		return a.printDiff(e, opts)
	}
	return a.writeClient(ctx, e, opts)
}

// self returns what the client starts, with its settings, or the gateway that it connects to.
func (a *app) self(opts installFlags) (clients.Self, *settingsfile.File, error) {
	if opts.url != "" {
		us, err := remoteSelf(opts)
		if err == nil && !weburl.IsSecure(us.URL) {
			a.Say("--url is not https: others on the network can read what is sent, and the token")
		}
		return us, nil, err
	}
	settings, err := a.servedSettings()
	if err != nil {
		return clients.Self{}, nil, err
	}
	command, err := os.Executable()
	return clients.Self{Command: command, Args: []string{"serve", "--share", "--config", settings.Path}}, settings, err
}

// variableName matches the name of an environment variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func remoteSelf(opts installFlags) (clients.Self, error) {
	u, err := url.Parse(opts.url)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return clients.Self{}, &tool.Error{Kind: tool.Invalid, Message: "--url is not an http(s) URL", Hint: "give the URL of the MCP endpoint, such as https://gateway.example.com/mcp"}
	}
	if u.User != nil {
		return clients.Self{}, &tool.Error{Kind: tool.Invalid, Message: "--url has a user or a password", Hint: "put a token into a variable, and name that with --token-variable"}
	}
	if opts.tokenVariable != "" && !variableName.MatchString(opts.tokenVariable) {
		return clients.Self{}, &tool.Error{Kind: tool.Invalid, Message: "--token-variable is not the name of a variable", Hint: "give the name, such as SALLYPORT_TOKEN, not the token itself"}
	}
	return clients.Self{URL: opts.url, TokenVariable: opts.tokenVariable}, nil
}

// servedSettings opens the settings that the client's sallyport will serve. They must exist.
func (a *app) servedSettings() (*settingsfile.File, error) {
	path, err := settingsfile.Find(a.ConfigPath, a.Env)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, &cli.ConfigError{Err: err}
	}
	return a.OpenSettings(path)
}

// clientEdit is one edit of a client's settings.
type clientEdit struct {
	client clients.Client
	file   string
	// old is the current file, nil if there is none; with is the file with sallyport's entry added, without the same with
	// the replaced servers removed.
	old, withEntry, withoutReplaced []byte
	servers, replaced               []clients.Server
	// blockedBy is the setting by which the client will not start sallyport, "" if it will.
	blockedBy string
	// needsToken says that a person must put a token into the entry.
	needsToken bool
}

// editClient returns the edit of a file that adds us. Without settings no server is replaced.
func editClient(c clients.Client, p clients.System, file string, us clients.Self, settings *settingsfile.File) (*clientEdit, error) {
	e := &clientEdit{client: c, file: file, needsToken: c.NeedsToken(us)}
	var err error
	if e.old, err = os.ReadFile(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if err == nil && e.old == nil {
		e.old = []byte{}
	}
	if e.withEntry, err = c.Install(e.old, us, p); err != nil {
		return nil, err
	}
	e.blockedBy = c.BlockedBy(p, file, e.withEntry, us)
	if e.servers, _, err = clients.NewReader(p).Read(c, file, e.old); err != nil {
		return nil, err
	}
	if settings == nil {
		e.withoutReplaced = e.withEntry
		return e, nil
	}
	if e.replaced, err = clients.FindReplaced(settings, e.servers); err != nil {
		return nil, err
	}
	e.withoutReplaced, err = c.Remove(e.withEntry, e.replaced...)
	return e, err
}

// names returns the names of the replaced servers.
func (e *clientEdit) names() string {
	var names []string
	for _, s := range e.replaced {
		names = append(names, s.Label)
	}
	return cli.Clean(strings.Join(names, ", "))
}

// blocked describes the setting that blocks sallyport.
func (e *clientEdit) blocked() string {
	return e.client.Title + " will not start sallyport because of " + e.blockedBy + "; change that setting too"
}

func (a *app) printDiff(e *clientEdit, opts installFlags) error {
	made := e.withEntry
	if opts.replace {
		made = e.withoutReplaced
	}
	if string(made) == string(e.old) {
		a.Say("nothing would change in " + e.file)
	} else if err := a.Print(clients.Diff(e.file, e.old, made, e.servers)); err != nil {
		return err
	}
	if e.blockedBy != "" {
		a.Say(e.blocked())
	}
	if !opts.replace && len(e.replaced) > 0 {
		a.Say("--replace would also remove what upstreams.yaml has: " + e.names())
	}
	return nil
}

func (a *app) writeClient(ctx context.Context, e *clientEdit, opts installFlags) error {
	made := e.withEntry
	switch remove, err := a.confirmRemove(ctx, e, opts); {
	case err != nil:
		return err
	case remove:
		made = e.withoutReplaced
	}
	if e.blockedBy != "" {
		a.Say(e.blocked())
	}
	if string(made) == string(e.old) {
		return a.Print(e.client.Title + " has sallyport already; nothing was changed in " + e.file)
	}
	backup, err := atomicfile.Write(e.file, e.old, made, &atomicfile.Options{Backup: true, Mode: 0o600})
	if err != nil {
		return err
	}
	text := e.client.Title + " has sallyport now, in " + e.file + "; restart it to see it"
	if backup != "" {
		text += fmt.Sprintf("\nbackup: %s (to undo: mv %[1]s %s)", quoteShell(backup), quoteShell(e.file))
	}
	if e.needsToken {
		text += "\n" + e.client.Title + " reads no variables here: replace " + clients.TokenMark + " in that file by a token"
	}
	switch {
	case len(e.replaced) == 0:
	case string(made) == string(e.withoutReplaced):
		text += "\nremoved, as upstreams.yaml has them: " + e.names()
	default:
		text += "\nkept, though upstreams.yaml has them too: " + e.names() + " (--replace removes them)"
	}
	return a.Print(text)
}

// confirmRemove reports whether to remove the replaced servers: by the flags, else it asks if stdin is a terminal.
func (a *app) confirmRemove(ctx context.Context, e *clientEdit, opts installFlags) (bool, error) {
	if len(e.replaced) == 0 || opts.keep || opts.replace {
		return opts.replace, nil
	}
	if !cli.IsTerminal(a.Stdin) {
		return false, nil
	}
	fmt.Fprintf(a.Stderr, "upstreams.yaml has these servers too: %s\nRemove them from %s? [y/N] ", e.names(), e.client.Title)
	answer := make(chan string, 1)
	go func() { // ends with the process: a read of a terminal cannot be called off
		line, _ := bufio.NewReader(a.Stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case line := <-answer:
		return line == "y" || line == "yes", nil
	}
}

func quoteShell(path string) string {
	if !strings.ContainsAny(path, " '\"$&()*;<>?[]`|~#!") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
