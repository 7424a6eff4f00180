package clientscmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/addition"
	"sallyport/internal/clients"
	"sallyport/internal/config"
	"sallyport/internal/settingsfile"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// importFlags are the flags of import.
type importFlags struct {
	addition.SecretStore
	dryRun, asJSON, bare bool
}

// ImportCommand returns the verb.
func ImportCommand(shared *cli.App) *cobra.Command {
	a := &app{shared}
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [flags] [CLIENT|FILE]...",
		Short: "import the MCP servers of other clients into the settings",
		Long: `Import reads the MCP servers from the settings of other clients, or from files in
their formats, and adds them to upstreams.yaml, which is created if there is none.
Without an argument it reads the settings of every client. It starts no commands and
does not change the clients' settings. The clients:
` + clientNames() + `.

Values that look like secrets are replaced with variables in upstreams.yaml;
--env-file writes the values to a file that upstreams.yaml then reads, and --keyring
stores them in the keyring of the system, as ${keyring:NAME}. Settings that cannot be
imported are listed as notes.

A server that runs a package of npm or PyPI, or an image by docker run, is isolated: it
reaches the hosts and folders that are known of it (see sallyport add --list) or that
its arguments and variables name, and no others. Folders are read-only, unless it is
known to write to them. Notes say what each server got. The others run with your rights.

A server that already exists is not added again. If its name is used by another
definition, the name of its client is appended.`,
		Example: `  sallyport import --dry-run
  sallyport import --env-file ~/.config/sallyport/secrets.env
  sallyport import cursor .vscode/mcp.json
  sallyport import --dry-run --json | jq '.servers[] | select(.outcome == "added") | .name'`,
		ValidArgs: clientList(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Keyring && f.EnvFile != "" {
				return cli.Misuse(cmd, "--env-file and --keyring exclude each other")
			}
			return a.importServers(args, f)
		},
	}
	cmd.Flags().StringVar(&f.EnvFile, "env-file", "", "write the secrets to `FILE` (mode 0600), and\nenv_file: FILE into upstreams.yaml")
	cmd.Flags().BoolVar(&f.Keyring, "keyring", false, "store the secrets in the keyring of the system")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be added to upstreams.yaml, and write nothing")
	cmd.Flags().BoolVar(&f.bare, "no-isolate", false, "isolate no server")
	cli.JSONFlag(cmd, &f.asJSON)
	return cmd
}

func clientList() []string {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

func clientNames() string { return strings.Join(clientList(), ", ") }

// system returns the system on which the settings of clients are searched.
func (a *app) system() (clients.System, error) {
	dir, err := os.Getwd()
	if err != nil {
		return clients.System{}, err
	}
	p := clients.System{OS: runtime.GOOS, Dir: dir, Getenv: a.Env}
	if p.Home, _ = a.Env("HOME"); p.Home == "" {
		p.Home, _ = a.Env("USERPROFILE")
	}
	if p.Home == "" {
		return p, errors.New("the home directory is not known; set HOME")
	}
	return p, nil
}

// source is a file to read, and its client.
type source struct {
	client clients.Client
	file   string
}

func (a *app) importServers(args []string, flags importFlags) error {
	p, err := a.system()
	if err != nil {
		return err
	}
	sources, err := importSources(args, p)
	if err != nil {
		return err
	}
	if len(sources) == 0 && !flags.asJSON {
		a.Say("no settings of any client were found; name a file, or see sallyport import --help")
		return nil
	}
	f, err := a.EditSettings()
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return a.PrintJSON(a.importResult(f, nil))
	}
	r := clients.NewReader(p)
	found, problem := a.readSources(r, sources)
	rows, err := a.merge(f, found, &clients.MergeOptions{EnvFile: flags.EnvFile, Keyring: flags.Keyring, Others: otherServers(r, sources, p)}, flags.bare)
	if err != nil {
		return err
	}
	return errors.Join(a.writeImport(f, rows, flags), problem)
}

// merge adds servers to the settings in memory. bare isolates none.
func (a *app) merge(f *settingsfile.File, found []clients.Found, opts *clients.MergeOptions, bare bool) ([]clients.Row, error) {
	if !bare && isolates(f) {
		opts.Isolate = a.isolate
	}
	rows, err := clients.MergeWith(f, found, opts)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err, Hint: "nothing was written"}
	}
	return rows, nil
}

// writeImport writes the files and prints what was done; with --dry-run it prints what would be done.
func (a *app) writeImport(f *settingsfile.File, rows []clients.Row, flags importFlags) error {
	switch {
	case flags.asJSON && flags.dryRun:
		return a.PrintJSON(a.importResult(f, rows))
	case flags.asJSON:
		if _, err := a.saveImport(f, rows, flags.SecretStore); err != nil {
			return err
		}
		return a.PrintJSON(a.importResult(f, rows))
	case flags.dryRun:
		fmt.Fprint(a.Stderr, cli.Clean(importTable(rows)))
		return a.printAdditions(f, rows)
	}
	return a.finishImport(f, rows, flags.SecretStore)
}

// printAdditions prints the entries that would be added, not the whole file, which may
// hold secrets.
func (a *app) printAdditions(f *settingsfile.File, rows []clients.Row) error {
	if !f.Changed() {
		a.Say("nothing would be written")
		return nil
	}
	a.Say("nothing was written; this would be added to " + f.Path + ":")
	added := &settingsfile.File{Path: f.Path}
	for _, row := range rows {
		if row.Outcome == clients.Added {
			if err := added.Add(row.Entry); err != nil {
				return err
			}
		}
	}
	return a.Print(string(added.Data))
}

// importSources returns the files to import: those that args name, or without args all that exist.
func importSources(args []string, p clients.System) ([]source, error) {
	var all []source
	if len(args) == 0 {
		for _, c := range clients.All() {
			all = append(all, existingFiles(c, p)...)
		}
	}
	for _, arg := range args {
		sources, err := importSource(arg, p)
		if err != nil {
			return nil, err
		}
		all = append(all, sources...)
	}
	return slices.CompactFunc(all, func(a, b source) bool { return a.file == b.file }), nil // in the home folder, a project's file may be the user's
}

// existingFiles returns the settings files of a client that exist.
func existingFiles(c clients.Client, p clients.System) []source {
	var all []source
	for _, file := range []string{c.UserFile(p), c.ProjectFile(p)} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
			all = append(all, source{c, file})
		}
	}
	return all
}

func importSource(arg string, p clients.System) ([]source, error) {
	if c, ok := clients.Find(arg); ok {
		all := existingFiles(c, p)
		if len(all) == 0 {
			return nil, &tool.Error{Kind: tool.NotFound, Message: c.Title + " has no settings here",
				Hint: "looked for " + strings.Trim(c.UserFile(p)+" and "+c.ProjectFile(p), " and")}
		}
		return all, nil
	}
	file, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(arg, "/.") {
		return nil, unknownClient(arg)
	}
	if err != nil {
		return nil, err
	}
	c, ok := clients.Guess(file, data, p)
	if !ok {
		return nil, &tool.Error{Kind: tool.Invalid, Message: arg + " holds no MCP servers that any client would find",
			Hint: "it needs the key mcpServers, servers, context_servers, mcp_servers (TOML) or extensions (YAML)"}
	}
	return []source{{c, file}}, nil
}

func unknownClient(name string) error {
	err := &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%.40q is neither a client nor a file", name), Hint: "the clients are " + clientNames()}
	if near := suggest.Of(name, clientList()); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return err
}

// readSources reads the sources. It prints the errors of those that it cannot read; problem is set then.
func (a *app) readSources(r *clients.Reader, sources []source) (found []clients.Found, problem error) {
	for _, s := range sources {
		data, err := os.ReadFile(s.file)
		var servers []clients.Server
		var notes []string
		if err == nil {
			servers, notes, err = r.Read(s.client, s.file, data)
		}
		if err != nil {
			a.Say(s.client.Title + ": " + err.Error())
			problem = cli.Status(cli.ExitFailed)
			continue
		}
		for _, note := range notes {
			a.Say(s.client.Title + ": " + note)
		}
		found = append(found, clients.Found{Client: s.client, File: s.file, Servers: servers})
	}
	return found, problem
}

// otherServers returns the servers of the clients' files that are not imported. A file
// that cannot be read has none.
func otherServers(r *clients.Reader, sources []source, p clients.System) []clients.Found {
	var all []clients.Found
	for _, c := range clients.All() {
		for _, s := range existingFiles(c, p) {
			if slices.ContainsFunc(sources, func(named source) bool { return named.file == s.file }) {
				continue
			}
			data, err := os.ReadFile(s.file)
			if err != nil {
				continue
			}
			if servers, _, err := r.Read(s.client, s.file, data); err == nil {
				all = append(all, clients.Found{Client: s.client, File: s.file, Servers: servers})
			}
		}
	}
	return all
}

// finishImport writes the files and prints what was done.
func (a *app) finishImport(f *settingsfile.File, rows []clients.Row, store addition.SecretStore) error {
	made, err := a.saveImport(f, rows, store)
	if err != nil {
		return err
	}
	text := importTable(rows) + importCounts(rows)
	if made {
		text += " in " + f.Path
	}
	if slices.ContainsFunc(rows, func(r clients.Row) bool { return r.Open && r.Outcome == clients.Added }) {
		text += "\n" + whatItNeeds
	}
	if err := a.Print(text); err != nil {
		return err
	}
	return a.reportVariables(f, rows, store)
}

// saveImport stores the secrets, and writes the settings if they have changed.
func (a *app) saveImport(f *settingsfile.File, rows []clients.Row, store addition.SecretStore) (changed bool, err error) {
	if err := store.Put(f, clients.SecretsOf(rows)); err != nil { // first, so that references never lack their values
		return false, err
	}
	changed = f.Changed()
	return changed, f.Save()
}

// importJSON is what import --json prints.
type importJSON struct {
	// Path is the settings file.
	Path    string       `json:"path"`
	Servers []serverJSON `json:"servers"`
	// Unset are the variables that the servers need and that are not set.
	Unset []string `json:"unset"`
}

// serverJSON is a server of a client, and what import does with it.
type serverJSON struct {
	Name      string          `json:"name"`
	From      string          `json:"from"`
	Transport string          `json:"transport"`
	Outcome   clients.Outcome `json:"outcome"`
	Notes     []string        `json:"notes"`
}

func (a *app) importResult(f *settingsfile.File, rows []clients.Row) importJSON {
	result := importJSON{Path: f.Path, Servers: []serverJSON{}, Unset: a.UnsetVariables(f, importedEntries(rows)...)}
	for _, row := range rows {
		result.Servers = append(result.Servers, serverJSON{row.Name, row.From, entryTransport(row.Entry), row.Outcome, row.Notes})
	}
	return result
}

func importedEntries(rows []clients.Row) (entries []settingsfile.Entry) {
	for _, row := range rows {
		if row.Outcome != clients.Skipped {
			entries = append(entries, row.Entry)
		}
	}
	return entries
}

// reportVariables prints where the secrets are, and which variables still have to be set.
func (a *app) reportVariables(f *settingsfile.File, rows []clients.Row, store addition.SecretStore) error {
	missing := a.UnsetVariables(f, importedEntries(rows)...)
	secrets := clients.SecretsOf(rows)
	lost := slices.ContainsFunc(missing, func(name string) bool { _, ok := secrets[name]; return ok })
	text := store.Report(f, secrets)
	if len(missing) > 0 {
		text = append(text, "not set yet: "+strings.Join(missing, ", "))
	}
	if lost {
		text = append(text, "to have the secrets among them set: sallyport import --env-file "+cmp.Or(f.EnvFile(), filepath.Join(filepath.Dir(f.Path), "secrets.env")))
	} else if len(missing) > 0 {
		text = append(text, "write NAME='value' for each into "+cmp.Or(f.EnvFile(), "a file that env_file in "+f.Path+" names"))
	}
	if len(text) == 0 {
		return nil
	}
	return a.Print(strings.Join(text, "\n"))
}

// importTable returns a table with a line for each server and its notes.
func importTable(rows []clients.Row) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UPSTREAM\tFROM\tTRANSPORT\tDONE\tNOTES")
	for _, row := range rows {
		notes := append(slices.Clone(row.Notes), "")
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.Name, row.From, entryTransport(row.Entry), row.Outcome, notes[0])
		for _, note := range notes[1:max(1, len(notes)-1)] {
			fmt.Fprintf(table, "\t\t\t\t%s\n", note)
		}
	}
	_ = table.Flush() // a strings.Builder takes everything
	return trimLines(b.String())
}

func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

func entryTransport(e settingsfile.Entry) string {
	switch {
	case e.Image() != "":
		return "stdio"
	case e.Command == "" && e.URL == "":
		return "-"
	}
	return cli.Transport(config.Upstream{Command: e.Command, URL: e.URL, Socket: e.Socket, Transport: e.Transport})
}

func importCounts(rows []clients.Row) string {
	counts := map[clients.Outcome]int{}
	for _, row := range rows {
		counts[row.Outcome]++
	}
	return fmt.Sprintf("%d added, %d already there, %d skipped", counts[clients.Added], counts[clients.Existing], counts[clients.Skipped])
}
