package initcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// flags hold the answers that are given on the command line.
type flags struct {
	yes, replace                 bool
	from, only, servers, clients []string
	envFile, folder              string
}

// InitCommand returns the verb.
func InitCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var f flags
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "set up sallyport step by step",
		Long: `Init writes the first settings, and checks that they work:

1. It finds the MCP servers of other clients and imports those that you choose.
   Secrets go to the keyring of the system, or to a file that only you can read.
   If it finds none, it offers servers that need no credentials: ` + strings.Join(offerNames(), ", ") + `.
2. It starts the servers and the sandboxes, with a snapshot of each interpreter.
3. It runs a first search and a first program.
4. It adds the one entry to the clients that you choose, with a backup.

On a terminal it asks. Every answer also has a flag; without a terminal it does only
what the flags say. Init can be run again: it does not change anything twice.`,
		Example: `  sallyport init
  sallyport init --yes
  sallyport init --from cursor --install cursor --replace
  sallyport init --server filesystem --folder ~/Documents --server memory`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.init(cmd.Context(), f) },
	}
	set := cmd.Flags()
	set.BoolVar(&f.yes, "yes", false, "give the proposed answer to every question")
	set.StringArrayVar(&f.from, "from", nil, "import the servers of `CLIENT`; may be repeated")
	set.StringArrayVar(&f.only, "only", nil, "import only the server `NAME` of the clients; may be repeated")
	set.StringVar(&f.envFile, "env-file", "", "write the secrets to `FILE` (default the env_file of the settings,\nelse the keyring, else secrets.env next to the settings)")
	set.StringArrayVar(&f.servers, "server", nil, "add the server `NAME` of those that init offers; may be repeated")
	set.StringVar(&f.folder, "folder", "", "let the server filesystem read and write `DIR`\n(default ~/sallyport-files, which is made)")
	set.StringArrayVar(&f.clients, "install", nil, "add the entry to `CLIENT`; may be repeated")
	set.BoolVar(&f.replace, "replace", false, "remove the imported servers from the clients with the entry")
	cli.CompleteFlag(cmd, "server", offerNames()...)
	cli.CompleteFlag(cmd, "from", clientNames()...)
	cli.CompleteFlag(cmd, "install", clientNames()...)
	return cmd
}

// setup is one run of init.
type setup struct {
	*app
	flags
	ask  *questions
	file *settingsfile.File
	// failed counts the steps that failed; the others were done.
	failed int
	// restart are the clients that have a new entry.
	restart []string
	// query is what the first search looked for.
	query string
}

func (a *app) init(ctx context.Context, f flags) error {
	s := &setup{app: a, flags: f, ask: newQuestions(a.App, f.yes)}
	if !s.ask.possible() && !f.yes && len(f.from)+len(f.only)+len(f.servers)+len(f.clients) == 0 {
		return &tool.Error{Kind: tool.Invalid, Message: "init asks questions, and stdin is not a terminal",
			Hint: "give --yes for the proposed answers, or --from CLIENT, --server NAME and --install CLIENT"}
	}
	var err error
	if s.file, err = a.EditSettings(); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.chooseServers, s.firstRun, s.chooseClients} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return errors.Join(a.Print(s.nextText()), s.status())
}

// fail prints why a step failed and what to do; the other steps go on.
func (s *setup) fail(what string, err error, fix string) {
	s.failed++
	s.Say(what + ": " + errorText(err))
	fmt.Fprintln(s.Stderr, "to go on: "+cli.Clean(fix))
}

// errorText returns the text of an error with its hint.
func errorText(err error) string {
	if e, ok := errors.AsType[*tool.Error](err); ok && e.Hint != "" {
		return e.Message + "; " + e.Hint
	}
	return err.Error()
}

func (s *setup) status() error {
	if s.failed > 0 {
		return cli.Status(cli.ExitFailed)
	}
	return nil
}

// nextText returns what to do next.
func (s *setup) nextText() string {
	var b strings.Builder
	if s.failed > 0 {
		fmt.Fprintf(&b, "\n%s. Do what is said above after \"to go on\", then run sallyport init again: it does what is left.\n", cli.Plural(s.failed, "step failed", "steps failed"))
	}
	b.WriteString("\nNext:\n")
	if len(s.restart) > 0 {
		b.WriteString("  restart " + strings.Join(s.restart, " and ") + " if it is running: its model then has search_tools and execute_code\n")
	} else {
		b.WriteString("  add Sallyport to a client:            sallyport install CLIENT\n")
	}
	if s.query != "" {
		b.WriteString("  find functions, as a model does:      sallyport search " + quoteWord(s.query) + "\n")
	}
	b.WriteString(`  run a program, as a model does:       sallyport exec FILE
  add a server:                         sallyport upstreams add NAME -- COMMAND
  check everything:                     sallyport doctor
Your settings: `)
	b.WriteString(s.file.Path)
	return b.String()
}

// quoteWord quotes text for a shell if it has spaces.
func quoteWord(text string) string {
	if strings.ContainsAny(text, " ") {
		return `"` + text + `"`
	}
	return text
}
