package initcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/clientscmd"
	"sallyport/gateway/addition"
	"sallyport/internal/clients"
	"sallyport/internal/secret"
	"sallyport/internal/settingsfile"
)

// header begins new settings.
const header = schemaLine + `# The settings of Sallyport, written by sallyport init. Change what you like; sallyport doctor checks it.

# Each upstream is an MCP server behind Sallyport: programs import NAME as servers.NAME, and models read its description.
# ${VAR} is a variable of the environment or of env_file; $$ is a plain $. Add servers with sallyport upstreams add.
upstreams: {}
`

func clientNames() (names []string) {
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

// candidate is one server that can be imported.
type candidate struct{ file, server int }

// chooseServers imports servers of clients, and adds servers that init offers.
func (s *setup) chooseServers(ctx context.Context) error {
	if err := s.importServers(ctx); err != nil {
		return err
	}
	if err := s.addServers(ctx); err != nil {
		return err
	}
	entries, err := s.file.Entries()
	if err == nil && len(entries) == 0 {
		s.Say("no server was chosen, so no settings were written; run sallyport init again, or sallyport try")
		return cli.Status(cli.ExitFailed)
	}
	return errors.Join(err, s.writeSchema())
}

func (s *setup) importServers(ctx context.Context) error {
	found, others, problem, err := clientscmd.Find(s.App, s.from)
	if err != nil {
		return err
	}
	if problem != nil {
		s.fail("import", errors.New("the settings of a client cannot be read"), "correct that file, or import from others with --from CLIENT")
	}
	found = withoutSelf(found)
	fresh, known, err := s.fresh(found)
	if err != nil {
		return err
	}
	if known > 0 {
		if err := s.Print(cli.Plural(known, "server of your clients is", "servers of your clients are") + " in " + s.file.Path + " already"); err != nil {
			return err
		}
	}
	chosen, err := s.chooseImports(ctx, found, fresh)
	if err != nil || len(chosen) == 0 {
		return err
	}
	left := slices.DeleteFunc(everyServer(found), func(c candidate) bool { return slices.Contains(chosen, c) })
	return s.importChosen(picked(found, chosen), append(picked(found, left), others...))
}

// importChosen imports the servers, with their secrets in the env file.
func (s *setup) importChosen(found, others []clients.Found) error {
	store := addition.SecretStore{EnvFile: cmp.Or(s.envFile, s.file.EnvFile(), filepath.Join(filepath.Dir(s.file.Path), "secrets.env"))}
	switch {
	case !hasSecrets(found):
		s.begin()
	case s.prefersKeyring():
		s.begin()
		store = addition.SecretStore{Keyring: true}
	default:
		if err := s.beginWith(store.EnvFile); err != nil {
			return err
		}
	}
	return clientscmd.Import(s.App, s.file, found, others, store)
}

// prefersKeyring reports whether secrets go to the keyring: there is one, and neither the user nor the settings name a file.
func (s *setup) prefersKeyring() bool {
	return s.envFile == "" && s.file.EnvFile() == "" && secret.Check() == nil
}

func hasSecrets(found []clients.Found) bool {
	return slices.ContainsFunc(found, func(source clients.Found) bool {
		return slices.ContainsFunc(source.Servers, func(server clients.Server) bool { return len(server.Secrets) > 0 })
	})
}

// begin writes the header into new settings.
func (s *setup) begin() {
	if len(s.file.Data) == 0 {
		s.file.Data = []byte(header)
	}
}

// beginWith is begin with an env file.
func (s *setup) beginWith(envFile string) error {
	if len(s.file.Data) > 0 {
		return nil
	}
	s.begin()
	if err := s.file.SetEnvFile(envFile); err != nil {
		return err
	}
	explained := strings.NewReplacer("\nenv_file:", "\n# Variables that the environment does not have, as lines NAME='value'. Only you can read the file.\nenv_file:", "\n# Each", "\n\n# Each")
	s.file.Data = []byte(explained.Replace(string(s.file.Data)))
	return nil
}

// withoutSelf returns the files without the entry of sallyport itself.
func withoutSelf(found []clients.Found) []clients.Found {
	for i := range found {
		found[i].Servers = slices.DeleteFunc(slices.Clone(found[i].Servers), func(server clients.Server) bool { return server.Self })
	}
	return found
}

// fresh returns the servers that the settings do not have, and how many they have.
func (s *setup) fresh(found []clients.Found) (fresh []candidate, known int, err error) {
	scratch, err := s.OpenSettings(s.file.Path)
	if err != nil {
		return nil, 0, err
	}
	rows, err := clients.Merge(scratch, found)
	if err != nil {
		return nil, 0, err
	}
	at := 0
	for i, source := range found {
		for j := range source.Servers {
			switch {
			case rows[at].Outcome == clients.Added:
				fresh = append(fresh, candidate{i, j})
			case rows[at].Outcome == clients.Existing && s.has(rows[at].Name): // otherwise two clients have it
				known++
			}
			at++
		}
	}
	return fresh, known, nil
}

// chooseImports returns which of the servers to import.
func (s *setup) chooseImports(ctx context.Context, found []clients.Found, fresh []candidate) ([]candidate, error) {
	var options []option
	for _, c := range fresh {
		source := found[c.file]
		server := source.Servers[c.server]
		options = append(options, option{name: server.Label, proposed: !server.Entry.Disabled, label: importLabel(source.Client, server)})
	}
	if len(s.from) > 0 && len(s.only) == 0 {
		return fresh, nil
	}
	chosen, err := s.ask.choose(ctx, "MCP servers of your clients. Which ones shall Sallyport have?", options, s.only, "--only")
	var picks []candidate
	for _, i := range chosen {
		picks = append(picks, fresh[i])
	}
	return picks, err
}

// importLabel describes a server for the question.
func importLabel(c clients.Client, server clients.Server) string {
	what := server.Entry.URL
	if server.Entry.Command != "" {
		what = strings.Join(append([]string{filepath.Base(server.Entry.Command)}, server.Entry.Args...), " ")
	}
	return fmt.Sprintf("%-16s %-14s %s", cli.Cell(server.Label, 40), c.Title, cli.Cell(what, 60))
}

func everyServer(found []clients.Found) (all []candidate) {
	for i, source := range found {
		for j := range source.Servers {
			all = append(all, candidate{i, j})
		}
	}
	return all
}

// picked returns the files with only the chosen servers.
func picked(found []clients.Found, chosen []candidate) (all []clients.Found) {
	for i, source := range found {
		source.Servers = nil
		for _, c := range chosen {
			if c.file == i {
				source.Servers = append(source.Servers, found[i].Servers[c.server])
			}
		}
		if len(source.Servers) > 0 {
			all = append(all, source)
		}
	}
	return all
}

// has reports whether the settings have an upstream with a name.
func (s *setup) has(name string) bool {
	entries, _ := s.file.Entries() // an error shows when the entry is added
	return slices.ContainsFunc(entries, func(e settingsfile.Entry) bool { return e.Name == name })
}
