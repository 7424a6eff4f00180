package clients

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/containerrun"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// variable is a variable in the entry of a server. Its final name is not known while the
// server is read, since other servers and the settings determine which names are free.
// Until then the entry and the notes contain a mark, see [mark].
type variable struct {
	// name is the preferred name, own the name with the prefix of the server.
	name, own string
	// literal: the client's settings contain the value. Otherwise the client reads the variable.
	literal bool
	value   string
}

// mark is the text in place of the name of the variable with an index. Texts of
// clients contain no NUL byte.
func mark(index int) string { return "\x00" + strconv.Itoa(index) + "\x00" }

var (
	marks = regexp.MustCompile(`\x00(\d+)\x00`)
	// references matches an escaped $, or a reference to a variable by its name or mark, or to the keyring.
	references = regexp.MustCompile(`\$\$|\$\{(\x00\d+\x00|[A-Za-z_][A-Za-z0-9_]*|keyring:[A-Za-z0-9][A-Za-z0-9._-]*)(\}|:-)`)
)

// variable returns the mark of a variable of the server, which it adds if it is new.
func (r *serverParser) variable(v variable) string {
	v.own = r.prefix + "_" + strings.TrimPrefix(v.name, r.prefix+"_")
	at := slices.Index(r.out.variables, v)
	if at < 0 {
		at = len(r.out.variables)
		r.out.variables = append(r.out.variables, v)
	}
	return mark(at)
}

// assignVariable returns the mark of a variable for a secret.
func (r *serverParser) assignVariable(name, value, where string) string {
	made := r.variable(variable{name: name, literal: true, value: value})
	r.note("secret in %s is now ${%s}", sanitize.Line(where, 60), made)
	return made
}

// read returns the mark of a variable that the client reads. Goose sets some of them in
// the entry itself.
func (r *serverParser) read(name string) string {
	if value, ok := r.local[name]; ok {
		delete(r.unread, name)
		return r.assignVariable(name, value, "its env "+name)
	}
	return r.variable(variable{name: name})
}

// candidates returns the n first names for the variable, the preferred one first.
func (v variable) candidates(n int) []string {
	all := []string{v.name, v.own}
	if v.literal && isGeneric(v.name) || v.name == v.own {
		all = all[1:]
	}
	for i := 2; len(all) < n; i++ {
		all = append(all, fmt.Sprintf("%s_%d", v.own, i))
	}
	return all
}

// isCandidate reports whether a name is one that the variable can get.
func (v variable) isCandidate(name string) bool {
	if v.literal {
		name = strings.TrimPrefix(name, KeyringPrefix)
	}
	if number, ok := strings.CutPrefix(name, v.own+"_"); ok {
		n, err := strconv.Atoi(number)
		return err == nil && n > 1
	}
	return slices.Contains(v.candidates(0), name)
}

// named returns the server with names for its variables, by their indices.
func (s Server) named(names []string) Server {
	set := func(text string) string {
		return marks.ReplaceAllStringFunc(text, func(found string) string { return names[index(found)] })
	}
	s.Entry = mapTexts(s.entry, set)
	s.Notes = make([]string, len(s.notes))
	for i, note := range s.notes {
		s.Notes[i] = set(note)
	}
	s.Secrets = config.Secrets{}
	for i, v := range s.variables {
		if v.literal && names[i] != "" {
			s.Secrets[names[i]] = v.value
		}
	}
	return s
}

// index returns the index of a mark.
func index(mark string) int {
	n, _ := strconv.Atoi(strings.Trim(mark, "\x00")) // only marks that [mark] made get here
	return n
}

// mapTexts returns a copy of an entry with f applied to each text that may have references.
func mapTexts(e settingsfile.Entry, f func(string) string) settingsfile.Entry {
	all := func(texts []string) []string {
		made := slices.Clone(texts)
		for i, text := range made {
			made[i] = f(text)
		}
		return made
	}
	values := func(old settingsfile.Values) settingsfile.Values {
		made := maps.Clone(old)
		for name, text := range made {
			made[name] = f(text)
		}
		return made
	}
	e.Command, e.Dir, e.URL, e.Socket = f(e.Command), f(e.Dir), f(e.URL), f(e.Socket)
	e.Args, e.Env, e.Headers = all(e.Args), values(e.Env), values(e.Headers)
	if e.Auth != nil {
		auth := *e.Auth
		auth.ClientID, auth.ClientSecret, auth.Scopes = f(auth.ClientID), f(auth.ClientSecret), all(auth.Scopes)
		e.Auth = &auth
	}
	return e
}

// shape returns an entry without the names of its variables, and the names in their
// order. Entries for which [settingsfile.Entry.Same] holds have the same shape. So have a
// command line docker run and the image in a sandbox that it becomes.
func shape(e settingsfile.Entry) (shape string, names []string) {
	if image, ok, err := containerrun.Convert(e); ok && err == nil {
		e = image
	}
	e.Description, e.Auth = "", nil
	if e.Transport == "auto" {
		e.Transport = ""
	}
	var b strings.Builder
	for _, text := range e.Texts() {
		hidden := references.ReplaceAllStringFunc(text, func(found string) string {
			m := references.FindStringSubmatch(found)
			if m[1] == "" {
				return found
			}
			names = append(names, m[1])
			return "${" + m[2]
		})
		fmt.Fprintf(&b, "%q ", hidden)
	}
	fmt.Fprintf(&b, "%q %q %d %s", slices.Sorted(maps.Keys(e.Env)), slices.Sorted(maps.Keys(e.Headers)), len(e.Args), e.Transport)
	if e.Image() != "" {
		fmt.Fprintf(&b, " %q %q", e.Image(), e.Isolate.Mounts)
	}
	return b.String(), names
}

// authNames returns the names of the variables in the OAuth settings of an entry.
func authNames(e settingsfile.Entry) []string {
	if e.Auth == nil {
		return nil
	}
	_, names := shape(settingsfile.Entry{Command: e.Auth.ClientID, Dir: e.Auth.ClientSecret, Args: e.Auth.Scopes})
	return names
}

// namesIn returns the names of the variables that a text refers to.
func namesIn(text string) []string {
	var all []string
	for _, m := range references.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			all = append(all, m[1])
		}
	}
	return all
}
