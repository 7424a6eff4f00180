package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
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
	Entry   config.Entry
	Secrets config.Secrets
	Outcome Outcome
	// Notes are those of the server, and one about the outcome.
	Notes []string
}

// Outcome is the result of an import in a word.
type Outcome string

// The outcomes.
const (
	Added    Outcome = "added"
	Existing Outcome = "there"
	Skipped  Outcome = "skipped"
)

// Merge adds the found servers to f. A server whose definition exists already, under
// any name, is not added again. If its name is used by another definition, the name of
// its client is appended. A server that would not load is skipped.
func Merge(f *config.File, found []Found) ([]Row, error) {
	entries, err := f.Entries()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, source := range found {
		for _, s := range source.Servers {
			row := Row{Name: sanitize.Line(s.Label, 64), From: source.Client.Title, Entry: s.Entry, Secrets: s.Secrets, Notes: s.Notes}
			switch other, same := findSame(entries, s.Entry); {
			case s.Skip != "":
				row.skip(s.Skip)
			case s.Self:
				row.skip("it is Sallyport itself")
			case same:
				row.Name, row.Outcome, row.Entry = other.Name, Existing, other
				row.Notes = []string{"is there already"}
			default:
				row.add(f, entries, source.Client.Name)
			}
			if row.Outcome == Added {
				entries = append(entries, row.Entry)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func findSame(entries []config.Entry, e config.Entry) (config.Entry, bool) {
	for _, other := range entries {
		if other.Same(e) {
			return other, true
		}
	}
	return config.Entry{}, false
}

// FindReplaced returns the servers that f defines.
func FindReplaced(f *config.File, servers []Server) ([]Server, error) {
	entries, err := f.Entries()
	if err != nil {
		return nil, err
	}
	var all []Server
	for _, s := range servers {
		if _, same := findSame(entries, s.Entry); same && !s.Self && s.Skip == "" {
			all = append(all, s)
		}
	}
	return all, nil
}

func (r *Row) skip(why string) {
	r.Outcome, r.Secrets, r.Notes = Skipped, nil, []string{why}
}

func (r *Row) add(f *config.File, entries []config.Entry, client string) {
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
