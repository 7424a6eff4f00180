package upstreamscmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/addition"
	"sallyport/internal/candidate"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// addFlags are the flags of add.
type addFlags struct {
	addition.SecretStore
	choice      candidate.Choice
	name        string
	description string
	set         []string
	hosts       []string
	headers     settingsfile.Values
	bare        bool
	yes         bool
	noTest      bool
	dryRun      bool
	asJSON      bool
	list        bool
}

// adder has the lookups of add.
type adder struct{ *app }

// AddCommand returns the verb add.
func AddCommand(shared *cli.App) *cobra.Command {
	a := &adder{&app{shared}}
	var f addFlags
	var headers []string
	cmd := &cobra.Command{
		Use:   "add [flags] SERVER",
		Short: "find a server, show it, start it isolated, and add it to the settings",
		Long: `Add looks a server up, shows who publishes it, what would run and what it may reach,
asks for the values that it needs, starts it once in a sandbox, and writes it into
upstreams.yaml. The rest of the file is not changed. SERVER is one of

  github                        a well-known server; --list shows them
  io.github.owner/name[@1.2.3]  an entry of the MCP registry
  npm:PACKAGE[@1.2.3]           a package of npm, run by npx
  pypi:PACKAGE[@1.2.3]          a package of PyPI, run by uvx
  image:NAME[:TAG]              an OCI image, as ghcr.io/owner/server:1.2.3
  https://example.com/mcp       a remote server
  https://example.com/graphql   a GraphQL API
  grpc:https://example.com      a gRPC server, which describes itself by reflection
  egress:api.example.com[,...]  functions that send HTTP requests of programs to these hosts
  ./openapi.yaml                an HTTP API: a document of OpenAPI, a file or a URL

A process runs in a sandbox: it reaches only the hosts and the folders that the settings
name, see isolate in the reference. Versions are exact, images have a digest, and
sallyport.lock pins the definitions of the tools. Secrets go to the keyring of the system, or to the env_file of
the settings (secrets.env beside them). Nothing is written if the server does not start.

Exit status: 0 if it was added or is there already, 1 if it did not start.`,
		Example: `  sallyport add filesystem --set directory=$HOME/notes
  sallyport add io.github.owner/weather --yes --set API_KEY="$KEY" --host api.example.com
  sallyport add npm:@scope/server@1.2.3 --dry-run
  sallyport search --registry weather`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.list && len(args) == 0:
				return nil
			case f.list || len(args) == 0 || args[0] == "":
				return cli.Misuse(cmd, "add takes one SERVER")
			case len(args) > 1:
				return cli.Misuse(cmd, "add takes one SERVER, not %.40q too; a command is added by: sallyport upstreams add NAME -- COMMAND", args[1])
			case f.Keyring && f.EnvFile != "":
				return cli.Misuse(cmd, "--env-file and --keyring exclude each other")
			case f.choice.Package && f.choice.Remote:
				return cli.Misuse(cmd, "--package and --remote exclude each other")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return a.listPresets(f.asJSON)
			}
			var err error
			if f.headers, err = pairs(cmd, "header", headers); err != nil {
				return err
			}
			return a.add(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "call the upstream `NAME`")
	flags.StringVar(&f.description, "description", "", "tell models in a few `WORDS` what they would find there")
	flags.StringArrayVar(&f.set, "set", nil, "give a value `NAME=VALUE`; may be repeated")
	flags.StringArrayVar(&headers, "header", nil, "send a header `NAME=VALUE` with every request to a URL; may be repeated")
	flags.StringArrayVar(&f.hosts, "host", nil, "let the process reach `HOST[:PORT]` too; may be repeated")
	flags.BoolVar(&f.bare, "no-isolate", false, "run the process with your rights, without a sandbox")
	flags.BoolVar(&f.choice.Package, "package", false, "run its package, also if it has a remote server")
	flags.BoolVar(&f.choice.Remote, "remote", false, "connect to its remote server, also if it has a package")
	flags.StringVar(&f.EnvFile, "env-file", "", "write secrets to `FILE` (mode 0600), and\nenv_file: FILE into upstreams.yaml")
	flags.BoolVar(&f.Keyring, "keyring", false, "store secrets in the keyring of the system")
	flags.BoolVar(&f.yes, "yes", false, "add it without asking")
	flags.BoolVar(&f.noTest, "no-test", false, "do not start it, or connect to it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be added, and write and start nothing")
	flags.BoolVar(&f.list, "list", false, "list the well-known servers")
	cli.JSONFlag(cmd, &f.asJSON)
	return cmd
}

// adding is one run of add.
type adding struct {
	*adder
	*addition.Addition
	flags  addFlags
	file   *settingsfile.File
	found  candidate.Candidate
	values candidate.Values
}

func (a *adder) add(ctx context.Context, server string, flags addFlags) error {
	file, err := a.EditSettings()
	if err != nil {
		return err
	}
	found, err := a.finder().Find(ctx, file, server, flags.choice)
	if err != nil {
		return err
	}
	d := &adding{adder: a, flags: flags, file: file, found: found}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if there, err := d.Existing(flags.name); err != nil || there != "" {
		return cmp.Or(err, d.report(addResult{Name: there, Outcome: "existing"}))
	}
	if err := d.file.Add(d.Made.Entry); err != nil {
		return editError(d.file, d.Made.Entry.Name, err)
	}
	if !flags.asJSON {
		fmt.Fprint(d.Err(), cli.Clean(describeEntry(d.Made.Entry)))
	}
	if flags.dryRun {
		return d.report(addResult{Outcome: "dry run"})
	}
	if ok, err := d.confirmed(ctx); err != nil || !ok {
		return err
	}
	return d.finish(ctx)
}

// finder returns the finder of servers, which shows what it reads.
func (a *adder) finder() addition.Finder {
	return addition.Finder{Env: a.Env, Progress: func(what string) func() { return a.Progress(what, 0).Stop }}
}

// prepare shows the server, gets the values, and makes the entry.
func (d *adding) prepare(ctx context.Context) (err error) {
	if d.values, err = d.given(); err != nil {
		return err
	}
	if !d.flags.asJSON {
		d.show()
	}
	if err := d.ask(ctx); err != nil {
		return err
	}
	d.Addition, err = addition.New(d.file, d.found, addition.Options{
		Name: d.flags.name, Description: d.flags.description, Values: d.values, Hosts: d.flags.hosts, Headers: d.flags.headers, Bare: d.flags.bare,
		Store: d.flags.SecretStore, Env: d.Env,
	})
	return err
}

// given parses --set.
func (d *adding) given() (candidate.Values, error) {
	values := candidate.Values{}
	for _, text := range d.flags.set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, &tool.Error{Kind: tool.Invalid, Message: "--set must be NAME=VALUE", Hint: "see sallyport add --help"}
		}
		values[name] = append(values[name], value)
	}
	if d.flags.bare && len(d.flags.hosts) > 0 {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "--host needs the sandbox, and --no-isolate is without one", Hint: "leave one of them out"}
	}
	return values, nil
}

// confirmed asks whether to add the server, on a terminal; elsewhere --yes says so.
func (d *adding) confirmed(ctx context.Context) (bool, error) {
	if d.flags.yes {
		return true, nil
	}
	if !cli.IsTerminal(d.Stdin) {
		return false, &tool.Error{Kind: tool.Invalid, Message: "nothing was added", Hint: "--yes adds it without asking; --dry-run shows what would be written"}
	}
	ok, err := cli.Confirm(ctx, d.App, "Add "+d.Made.Entry.Name+"?", true)
	if err == nil && !ok {
		d.Say("nothing was added")
	}
	return ok, err
}

// finish tests the server, and writes the secrets and the settings.
func (d *adding) finish(ctx context.Context) error {
	result := addResult{Outcome: "added"}
	if !d.flags.noTest {
		trial, err := d.try(ctx)
		if err != nil {
			return err
		}
		if result.Test = &trial; !trial.usable() {
			result.Outcome = "failed"
			return cmp.Or(d.report(result), error(cli.Status(cli.ExitFailed)))
		}
	}
	if err := d.Store.Put(d.file, d.Secrets()); err != nil {
		return err
	}
	if err := d.file.Save(); err != nil {
		return err
	}
	d.warnOfSecrets(d.Made.Entry)
	return d.report(result)
}
