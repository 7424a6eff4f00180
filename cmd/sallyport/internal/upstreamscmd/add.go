package upstreamscmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/registry"
	"sallyport/internal/secret"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// addFlags are the flags of add.
type addFlags struct {
	cli.SecretStore
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

// addition is one run of add.
type addition struct {
	*adder
	flags  addFlags
	file   *settingsfile.File
	found  candidate.Candidate
	values candidate.Values
	made   candidate.Made
}

func (a *adder) add(ctx context.Context, server string, flags addFlags) error {
	file, err := a.EditSettings()
	if err != nil {
		return err
	}
	found, err := a.find(ctx, file, server, flags)
	if err != nil {
		return err
	}
	d := &addition{adder: a, flags: flags, file: file, found: found}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if there, err := d.existing(); err != nil || there != "" {
		return cmp.Or(err, d.report(addResult{Name: there, Outcome: "existing"}))
	}
	if err := d.file.Add(d.made.Entry); err != nil {
		return editError(d.file, d.made.Entry.Name, err)
	}
	if !flags.asJSON {
		fmt.Fprint(d.Err(), cli.Clean(describeEntry(d.made.Entry)))
	}
	if flags.dryRun {
		return d.report(addResult{Outcome: "dry run"})
	}
	if ok, err := d.confirmed(ctx); err != nil || !ok {
		return err
	}
	return d.finish(ctx)
}

// prepare shows the server, gets the values, and makes the entry.
func (d *addition) prepare(ctx context.Context) (err error) {
	if d.values, err = d.given(); err != nil {
		return err
	}
	if !d.flags.asJSON {
		d.show()
	}
	if err := d.ask(ctx); err != nil {
		return err
	}
	name := d.flags.name
	if name == "" {
		if name, err = freeName(d.file, d.found.Name); err != nil {
			return err
		}
	}
	d.flags.SecretStore = d.store()
	d.made, err = d.found.Entry(candidate.EntryOptions{
		Name: name, Values: d.values, Bare: d.flags.bare, Hosts: d.flags.hosts, Description: d.flags.description, Reference: d.reference,
		Index: registry.Index(d.Env, d.found.Package()),
	})
	if err != nil {
		return err
	}
	return d.addHeaders()
}

// addHeaders adds those of the command line to the entry.
func (d *addition) addHeaders() error {
	e := &d.made.Entry
	switch {
	case len(d.flags.headers) == 0:
		return nil
	case !e.Remote():
		return &tool.Error{Kind: tool.Invalid, Message: "--header is for a server with a URL, and this one is a process", Hint: "leave it out"}
	case e.Headers == nil:
		e.Headers = settingsfile.Values{}
	}
	maps.Copy(e.Headers, d.flags.headers)
	return nil
}

// store returns the place of secrets: that of the flags, else the env_file of the settings, else the keyring if there is one, else a
// file next to the settings.
func (d *addition) store() cli.SecretStore {
	set := d.file.EnvFile()
	switch store := d.flags.SecretStore; {
	case store.Keyring || store.EnvFile != "":
		return store
	case set == "" && d.hasSecret() && secret.Check() == nil:
		return cli.SecretStore{Keyring: true}
	default:
		return cli.SecretStore{EnvFile: cmp.Or(set, filepath.Join(filepath.Dir(d.file.Path), "secrets.env"))}
	}
}

// hasSecret reports whether a value of a secret was given.
func (d *addition) hasSecret() bool {
	return slices.ContainsFunc(d.found.Inputs, func(in candidate.Input) bool { return in.Secret && len(d.values[in.Name]) > 0 })
}

// reference returns the text that refers to a secret.
func (d *addition) reference(variable string) string {
	if d.flags.Keyring {
		return "${keyring:" + variable + "}"
	}
	return "${" + variable + "}"
}

// given parses --set.
func (d *addition) given() (candidate.Values, error) {
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

// freeName returns the name, or with a number the first one that no upstream has.
func freeName(file *settingsfile.File, name string) (string, error) {
	entries, err := file.Entries()
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, e := range entries {
		taken[strings.ToLower(tool.Identifier(e.Name))] = true
	}
	return candidate.FreeName(name, func(made string) bool { return !taken[strings.ToLower(tool.Identifier(made))] }), nil
}

// existing returns the name of the upstream that is the same server, "" for none. An entry that was added before has other names of
// its variables, or the same ones.
func (d *addition) existing() (string, error) {
	entries, err := d.file.Entries()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Same(d.made.Entry) && (d.flags.name == "" || e.Name == d.flags.name) {
			return e.Name, nil
		}
	}
	return "", nil
}

// confirmed asks whether to add the server, on a terminal; elsewhere --yes says so.
func (d *addition) confirmed(ctx context.Context) (bool, error) {
	if d.flags.yes {
		return true, nil
	}
	if !cli.IsTerminal(d.Stdin) {
		return false, &tool.Error{Kind: tool.Invalid, Message: "nothing was added", Hint: "--yes adds it without asking; --dry-run shows what would be written"}
	}
	ok, err := cli.Confirm(ctx, d.App, "Add "+d.made.Entry.Name+"?", true)
	if err == nil && !ok {
		d.Say("nothing was added")
	}
	return ok, err
}

// finish tests the server, and writes the secrets and the settings.
func (d *addition) finish(ctx context.Context) error {
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
	if err := d.flags.Put(d.file, d.storedSecrets()); err != nil {
		return err
	}
	if err := d.file.Save(); err != nil {
		return err
	}
	d.warnOfSecrets(d.made.Entry)
	return d.report(result)
}

// storedSecrets returns the secrets by the names under which they are stored.
func (d *addition) storedSecrets() config.Secrets {
	if !d.flags.Keyring {
		return d.made.Secrets
	}
	all := config.Secrets{}
	for name, value := range d.made.Secrets {
		all["keyring:"+name] = value
	}
	return all
}
