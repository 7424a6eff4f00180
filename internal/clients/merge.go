package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// Found is one file of a client and the servers in it.
type Found struct {
	Client  Client
	File    string
	Servers []Server
}

// Row is the result of the import of one server.
type Row struct {
	// Name is the name of the upstream, or of the server if there is none.
	Name string
	// From is the client's title.
	From string
	// Entry is the added or the existing upstream; Secrets belong to it.
	Entry   settingsfile.Entry
	Secrets config.Secrets
	Outcome Outcome
	// Notes are those of the server, and one about the outcome.
	Notes []string
	// Open means that an isolated upstream may need more than its sandbox allows.
	Open bool
}

// Outcome is the result of an import in a word.
type Outcome string

// The outcomes.
const (
	Added    Outcome = "added"
	Existing Outcome = "there"
	Skipped  Outcome = "skipped"
)

// MergeOptions are the optional inputs of [MergeWith].
type MergeOptions struct {
	// EnvFile is a file of variables that will become the env_file.
	EnvFile string
	// Keyring: new secrets get names in the keyring of the system, see [KeyringPrefix].
	Keyring bool
	// Others are servers that are not added. They show which variables clients read, and
	// which upstreams use the same secret.
	Others []Found
	// Isolate returns an upstream that is added as it runs in a sandbox, or as it is, and a note about that, "" for none. open
	// means that it may need more than its sandbox allows. The nil function isolates none.
	Isolate func(settingsfile.Entry) (isolated settingsfile.Entry, note string, open bool)
}

// Merge is [MergeWith] without options.
func Merge(f *settingsfile.File, found []Found) ([]Row, error) { return MergeWith(f, found, nil) }

// MergeWith adds the found servers to f. A server whose definition exists already, under
// any name, is not added again. If its name is used by another definition, the name of
// its client is appended. A server that would not load is skipped. A secret gets a
// variable that has no other value: not in the env_file of f, and not in another server.
func MergeWith(f *settingsfile.File, found []Found, opts *MergeOptions) ([]Row, error) {
	if opts == nil {
		opts = &MergeOptions{}
	}
	m, err := newMerger(f, opts.EnvFile)
	if err != nil {
		return nil, err
	}
	m.naming.inKeyring, m.isolate = opts.Keyring, opts.Isolate
	all := slices.Concat(found, opts.Others)
	for _, source := range all {
		m.naming.reads(source.Servers)
	}
	for _, source := range all {
		m.naming.bind(source.Servers, m.known)
	}
	there := m.there(all)
	var rows []Row
	for _, source := range found {
		for _, s := range source.Servers {
			rows = append(rows, m.row(source.Client, s, there[len(rows)]))
		}
	}
	for i := range rows {
		m.withhold(&rows[i])
	}
	return rows, nil
}

// merger adds servers to a settings file.
type merger struct {
	file    *settingsfile.File
	naming  *naming
	entries []settingsfile.Entry
	known   upstreams
	// claims are the values of variables without a value that servers have, by variable and upstream.
	claims  map[string]map[string]string
	isolate func(settingsfile.Entry) (settingsfile.Entry, string, bool)
}

func newMerger(f *settingsfile.File, envFile string) (*merger, error) {
	entries, err := f.Entries()
	if err != nil {
		return nil, err
	}
	n, err := namingFor(f, entries, envFile)
	if err != nil {
		return nil, err
	}
	known := upstreams{}
	known.add(entries...)
	return &merger{file: f, naming: n, entries: entries, known: known, claims: map[string]map[string]string{}}, nil
}

// upstream is an upstream, and the server that it is, with the names of its variables.
type upstream struct {
	entry  settingsfile.Entry
	server Server
}

// there returns the servers that are upstreams already, by their indices: first those whose
// names say so. Otherwise a server could get the variable of another that has no value yet.
func (m *merger) there(all []Found) map[int]*upstream {
	found := map[int]*upstream{}
	for at := range farthest + 1 {
		i := -1
		for _, source := range all {
			for _, s := range source.Servers {
				if i++; found[i] == nil && s.Skip == "" && !s.Self {
					found[i] = m.match(s, at)
				}
			}
		}
	}
	return found
}

// match returns the upstream that a server is, nil if there is none, and takes its secrets.
func (m *merger) match(s Server, at int) *upstream {
	other, made, ok := m.naming.match(s, m.known, at)
	if !ok {
		return nil
	}
	m.naming.take(made)
	for name, value := range made.Secrets {
		if m.claims[name] == nil {
			m.claims[name] = map[string]string{}
		}
		m.claims[name][other.Name] = value
	}
	return &upstream{other, made}
}

// row adds a server, unless it is there or cannot be added.
func (m *merger) row(client Client, s Server, there *upstream) Row {
	row := Row{Name: sanitize.Line(s.Label, 64), From: client.Title, Entry: s.Entry}
	switch {
	case s.Skip != "":
		row.skip(s.Skip)
		return row
	case s.Self:
		row.skip("it is Sallyport itself")
		return row
	case there == nil: // maybe it was added now
		there = m.match(s, nowhere)
	}
	if there != nil {
		row.Name, row.Outcome, row.Entry, row.Secrets = there.entry.Name, Existing, there.entry, there.server.Secrets
		row.Notes = []string{"is there already"}
		return row
	}
	made := s.named(m.naming.fresh(s))
	row.Entry, row.Secrets, row.Notes = made.Entry, made.Secrets, slices.Concat(made.Notes, renamed(s, made))
	m.setIsolation(&row)
	if row.add(m.file, m.entries, client.Name); row.Outcome == Added {
		m.naming.take(made)
		m.entries = append(m.entries, row.Entry)
		m.known.add(row.Entry)
	}
	return row
}

// setIsolation isolates an upstream that can be.
func (m *merger) setIsolation(row *Row) {
	if m.isolate == nil || row.Entry.Command == "" {
		return
	}
	var note string
	if row.Entry, note, row.Open = m.isolate(row.Entry); note != "" {
		row.Notes = append(slices.Clip(row.Notes), note)
	}
}

// withhold removes the secrets whose variables have no value yet, and which upstreams
// without these secrets, or other parts of the settings, read too.
func (m *merger) withhold(row *Row) {
	for _, name := range slices.Sorted(maps.Keys(row.Secrets)) {
		if _, known := m.naming.stored(name); known || row.Outcome != Existing {
			continue
		}
		others := slices.ContainsFunc(m.naming.used[name], func(upstream string) bool {
			value, ok := m.claims[name][upstream]
			return !ok || value != row.Secrets[name]
		})
		if others {
			delete(row.Secrets, name)
			row.Notes = append(row.Notes, name+" is also read elsewhere: its value was not taken")
		}
	}
}

// renamed returns notes about the variables that a client reads, and that have another name here.
func renamed(s, made Server) []string {
	var notes []string
	_, marks := shape(s.entry)
	_, names := shape(made.Entry)
	for i, m := range marks {
		v := s.variables[index(m)]
		note := fmt.Sprintf("%s has a value of another upstream: set the variable %s", v.name, names[i])
		if !v.literal && v.name != names[i] && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// FindReplaced returns the servers that f defines.
func FindReplaced(f *settingsfile.File, servers []Server) ([]Server, error) {
	m, err := newMerger(f, "")
	if err != nil {
		return nil, err
	}
	m.naming.reads(servers)
	there := m.there([]Found{{Servers: servers}})
	var all []Server
	for i, s := range servers {
		if there[i] != nil {
			all = append(all, s)
		}
	}
	return all, nil
}

func (r *Row) skip(why string) {
	r.Outcome, r.Secrets, r.Notes = Skipped, nil, []string{why}
}

func (r *Row) add(f *settingsfile.File, entries []settingsfile.Entry, client string) {
	ids := map[string]string{}
	for _, e := range entries {
		ids[tool.Identifier(e.Name)] = e.Name
	}
	name := freeName(r.Entry.Name, client, ids)
	if other := ids[tool.Identifier(r.Entry.Name)]; name != r.Entry.Name {
		r.Notes = append(slices.Clip(r.Notes), fmt.Sprintf("another %s is there already", other))
	}
	r.Entry.Name, r.Name = name, name
	if err := f.Add(r.Entry); err != nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		r.skip("would not load: " + sanitize.Line(message, 200))
		return
	}
	r.Outcome = Added
}

// freeName returns the first unused of name, name-client, name-client-2 and so on.
func freeName(name, client string, ids map[string]string) string {
	made := name
	for n := 1; ; n++ {
		if _, taken := ids[tool.Identifier(made)]; !taken {
			return made
		}
		suffix := "-" + client
		if n > 1 {
			suffix = fmt.Sprintf("-%s-%d", client, n)
		}
		made = name[:min(len(name), maxName-len(suffix))] + suffix
	}
}

// SecretsOf returns the secrets of all rows that are upstreams.
func SecretsOf(rows []Row) config.Secrets {
	all := config.Secrets{}
	for _, row := range rows {
		maps.Copy(all, row.Secrets)
	}
	return all
}
