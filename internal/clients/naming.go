package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/envfile"
	"sallyport/internal/secret"
	"sallyport/internal/settingsfile"

	"gopkg.in/yaml.v3"
)

// naming assigns names to the variables of servers. A name with a value is never
// assigned to another value: not one of the env_file or the environment, not one that an
// upstream or another part of the settings refers to, and not one that a client reads.
type naming struct {
	// file are the values of the env_file.
	file config.Secrets
	// keyring has the values of names that begin with [KeyringPrefix].
	keyring *keyring
	// inKeyring: new secrets get names in the keyring.
	inKeyring bool
	// used are the upstreams that refer to a variable, "" for another part of the settings.
	used map[string][]string
	// read are the variables that servers of clients read.
	read map[string]bool
	// bound are the variables of upstreams that have a secret of a client.
	bound map[string]bool
	// taken are the values that were assigned so far.
	taken map[string]string
}

func newNaming() *naming {
	return &naming{file: config.Secrets{}, keyring: newKeyring(secret.Get), used: map[string][]string{}, read: map[string]bool{}, bound: map[string]bool{}, taken: map[string]string{}}
}

// namingFor returns the naming for a settings file. Each of files is read in addition to its env_file.
func namingFor(f *settingsfile.File, entries []settingsfile.Entry, files ...string) (*naming, error) {
	n := newNaming()
	for _, file := range append(files, f.EnvFile()) {
		vars, err := readVariables(file)
		if err != nil {
			return nil, fmt.Errorf("read the variables in %s: %w", file, err)
		}
		maps.Copy(n.file, vars)
	}
	for _, e := range entries {
		for _, name := range namesIn(strings.Join(e.Texts(), "\x00")) {
			n.use(name, e.Name)
		}
	}
	for _, name := range namesElsewhere(f.Data) {
		n.use(name, "")
	}
	return n, nil
}

func (n *naming) use(name, upstream string) {
	if !slices.Contains(n.used[name], upstream) {
		n.used[name] = append(n.used[name], upstream)
	}
}

// readVariables reads an env file, also one that serve would refuse because others can
// read it. A missing file has no variables.
func readVariables(file string) (config.Secrets, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return envfile.Parse(data)
}

// namesElsewhere returns the variables that a settings file refers to outside of its upstreams.
func namesElsewhere(data []byte) []string {
	doc := map[string]yaml.Node{}
	if yaml.Unmarshal(data, &doc) != nil { // the file was loaded before
		return nil
	}
	delete(doc, "upstreams")
	var all []string
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		node := doc[key]
		text, err := yaml.Marshal(&node)
		if err == nil {
			all = append(all, namesIn(string(text))...)
		}
	}
	return all
}

// stored returns the value of a name in the env_file or the keyring.
func (n *naming) stored(name string) (value string, ok bool) {
	if inner, ok := strings.CutPrefix(name, KeyringPrefix); ok {
		return n.keyring.value(inner)
	}
	value, ok = n.file[name]
	return value, ok
}

// reads remembers the variables that servers read.
func (n *naming) reads(servers []Server) {
	for _, s := range servers {
		for _, v := range s.variables {
			if !v.literal {
				n.read[v.name] = true
			}
		}
	}
}

// known reports whether a variable has a value, and whether it is the given one.
func (n *naming) known(s Server, name, value string) (known, equal bool) {
	equal = true
	if other, ok := n.taken[name]; ok {
		known, equal = true, other == value
	}
	if other, ok := n.stored(name); ok {
		return true, equal && other == value
	}
	if s.getenv == nil {
		return known, equal
	}
	if other, ok := s.getenv(name); ok {
		return true, equal && other == value
	}
	return known, equal
}

// fresh returns names for the variables of a server that is no upstream yet.
func (n *naming) fresh(s Server) []string {
	names := make([]string, len(s.variables))
	own := map[string]string{}
	for i, v := range s.variables {
		isFree := func(name string) bool {
			other, ok := own[name]
			return n.isFree(s, v, name) && (!ok || v.literal && other == v.value)
		}
		names[i] = v.firstFree(n.inKeyring, isFree)
		if v.literal {
			own[names[i]] = v.value
		} else {
			n.read[names[i]] = true
		}
	}
	return names
}

func (v variable) firstFree(inKeyring bool, isFree func(string) bool) string {
	for n := 2; ; n *= 2 {
		all := v.candidates(n)
		if inKeyring && v.literal {
			all = keyringNames(all)
		}
		if at := slices.IndexFunc(all, isFree); at >= 0 {
			return all[at]
		}
	}
}

// isFree reports whether a variable of a server may have a name.
func (n *naming) isFree(s Server, v variable, name string) bool {
	switch known, equal := n.known(s, name, v.value); {
	case !v.literal && name == v.name:
		return !n.isForeign(s, name)
	case !v.literal:
		return !known && len(n.used[name]) == 0
	case known && !equal:
		return false
	case known && n.inFileOrEnv(s, name):
		return true
	}
	return !n.read[name] && len(n.used[name]) == 0
}

func (n *naming) inFileOrEnv(s Server, name string) bool {
	if _, ok := n.stored(name); ok || s.getenv == nil {
		return ok
	}
	_, ok := s.getenv(name)
	return ok
}

// isForeign reports whether a variable that a client reads has a value here that belongs
// to another upstream.
func (n *naming) isForeign(s Server, name string) bool {
	value, ok := n.file[name]
	if !ok || len(n.used[name]) == 0 {
		return false
	}
	if s.getenv == nil {
		return true
	}
	set, ok := s.getenv(name)
	return !ok || set != value
}

// bind remembers the variables of upstreams that have the secrets of servers.
func (n *naming) bind(servers []Server, known upstreams) {
	for _, s := range servers {
		for at := range farthest + 1 {
			_, made, _ := n.match(s, known, at)
			for name := range made.Secrets {
				n.bound[name] = true
			}
		}
	}
}

// take remembers the values of the variables of a server.
func (n *naming) take(s Server) { maps.Copy(n.taken, s.Secrets) }

// shaped is an upstream and the names of its variables in the order of its shape.
type shaped struct {
	entry settingsfile.Entry
	names []string
}

// upstreams are the upstreams of a settings file by their shapes.
type upstreams map[string][]shaped

func (u upstreams) add(entries ...settingsfile.Entry) {
	for _, e := range entries {
		at, names := shape(e)
		u[at] = append(u[at], shaped{e, names})
	}
}

// match returns the upstream that a server is, and the server with the names of its
// variables. It is sure of an upstream if all secrets are the values of its variables. If a
// variable has no value yet, the names decide: such an upstream must be at a distance.
func (n *naming) match(s Server, known upstreams, at int) (e settingsfile.Entry, named Server, ok bool) {
	key, marks := shape(s.entry)
	for _, sure := range []bool{true, false} {
		for _, other := range known[key] {
			if !sure && distance(s, other.entry) != at {
				continue
			}
			if found, ok := n.unify(s, marks, other.names, sure); ok {
				n.unifyAuth(s, other.entry, found)
				return other.entry, s.named(found), true
			}
		}
	}
	return settingsfile.Entry{}, Server{}, false
}

// Distances of upstreams, see distance. No upstream is nowhere.
const (
	nowhere  = -1
	farthest = 2
)

// distance orders the upstreams that a server may be: the name with the client first, then the plain name.
func distance(s Server, e settingsfile.Entry) int {
	switch name := s.entry.Name; {
	case strings.HasPrefix(e.Name, name+"-"+s.client):
		return 0
	case e.Name == name:
		return 1
	}
	return farthest
}

// unify returns the names that the variables of a server have in an upstream. Each has one name, and no two have the same.
func (n *naming) unify(s Server, marks, names []string, sure bool) ([]string, bool) {
	found := make([]string, len(s.variables))
	for i, m := range marks {
		at := index(m)
		switch {
		case found[at] == names[i]:
			continue
		case found[at] != "" || slices.Contains(found, names[i]) || !n.mayBe(s, s.variables[at], names[i], sure):
			return nil, false
		}
		found[at] = names[i]
	}
	return found, true
}

// unifyAuth adds the names of variables in OAuth settings, which do not decide whether a server is an upstream.
func (n *naming) unifyAuth(s Server, e settingsfile.Entry, found []string) {
	marks, names := authNames(s.entry), authNames(e)
	if len(marks) != len(names) {
		return
	}
	for i, m := range marks {
		if at := index(m); found[at] == "" && !slices.Contains(found, names[i]) && n.mayBe(s, s.variables[at], names[i], false) {
			found[at] = names[i]
		}
	}
}

// mayBe reports whether a variable of a server can have the name that an upstream has for
// it; sure: only if its value is known.
func (n *naming) mayBe(s Server, v variable, name string, sure bool) bool {
	if !v.literal {
		return name == v.name || n.isForeign(s, v.name) && v.isCandidate(name) && !n.bound[name]
	}
	known, equal := n.known(s, name, v.value)
	if value, ok := n.stored(name); ok && value == v.value {
		return true // whatever the environment of this command has
	}
	return known && equal || !sure && !known && v.isCandidate(name) && !n.read[name]
}
