package clients_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"sallyport/internal/clients"
	"sallyport/internal/config"
	"sallyport/internal/envfile"
	"sallyport/internal/secret"
	"sallyport/internal/settingsfile"
)

// world is a settings file, its env file, and the settings of clients, by their names.
type world struct {
	t                 *testing.T
	settings, envFile string
	env               map[string]string
	clients           map[string]string
	// keyring: secrets are stored in the keyring; stored are those that were.
	keyring bool
	stored  config.Secrets
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	dir := t.TempDir()
	return &world{t, filepath.Join(dir, "upstreams.yaml"), filepath.Join(dir, "secrets.env"), map[string]string{}, files, false, config.Secrets{}}
}

func (w *world) write(file, text string) {
	w.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// useKeyring has secrets stored in the library's keyring in memory, which is empty.
func (w *world) useKeyring() {
	w.t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/not/used")
	keyring.MockInit()
	w.keyring = true
}

// state is the content of both files, and what was stored in the keyring.
func (w *world) state() string {
	settings, _ := os.ReadFile(w.settings)
	vars, _ := os.ReadFile(w.envFile)
	return fmt.Sprintf("%s---\n%s---\n%v", settings, vars, w.stored)
}

// found reads the settings of some clients, and of the others.
func (w *world) found(names []string) (found, others []clients.Found) {
	w.t.Helper()
	p := place()
	p.Getenv = func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }
	r := clients.NewReader(p)
	for _, name := range slices.Sorted(maps.Keys(w.clients)) {
		c := client(w.t, name)
		servers, _, err := r.Read(c, c.UserFile(p), []byte(w.clients[name]))
		if err != nil {
			w.t.Fatal(err)
		}
		source := clients.Found{Client: c, Servers: servers}
		if len(names) == 0 || slices.Contains(names, name) {
			found = append(found, source)
		} else {
			others = append(others, source)
		}
	}
	return found, others
}

// load imports clients, all without names, as the command does.
func (w *world) load(store bool, names ...string) []clients.Row {
	w.t.Helper()
	f, err := settingsfile.Open(w.settings, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	opts := &clients.MergeOptions{Keyring: store && w.keyring}
	if store && !w.keyring {
		opts.EnvFile = w.envFile
	}
	var found []clients.Found
	found, opts.Others = w.found(names)
	rows, err := clients.MergeWith(f, found, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	if secrets := clients.SecretsOf(rows); store && len(secrets) > 0 {
		w.store(f, secrets)
	}
	if err := f.Save(); err != nil {
		w.t.Fatal(err)
	}
	return rows
}

func (w *world) store(f *settingsfile.File, secrets config.Secrets) {
	w.t.Helper()
	if w.keyring {
		w.storeInKeyring(secrets)
		return
	}
	old, _ := os.ReadFile(w.envFile)
	data, err := envfile.Merge(old, secrets)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(w.envFile, string(data))
	if f.EnvFile() == "" {
		if err := f.SetEnvFile(w.envFile); err != nil {
			w.t.Fatal(err)
		}
	}
}

// storeInKeyring stores secrets with names in the keyring; a value there is never replaced by another one.
func (w *world) storeInKeyring(secrets config.Secrets) {
	w.t.Helper()
	_, ours := clients.SplitSecrets(secrets)
	for name, value := range ours {
		if old, err := secret.Get(name); err == nil && old != value {
			w.t.Fatalf("%s in the keyring is %s, and would be %s", name, old, value)
		}
		if err := secret.Set(name, value); err != nil {
			w.t.Fatal(err)
		}
		w.stored[clients.KeyringPrefix+name] = value
	}
}

var plainReference = regexp.MustCompile(`\$\{((?:keyring:)?[A-Z0-9_]+)\}`)

// tokens returns the value of GH_TOKEN and TOKEN of each upstream,
// with what the env file has and without an environment.
func (w *world) tokens() map[string]string {
	w.t.Helper()
	f, err := settingsfile.Open(w.settings, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	data, _ := os.ReadFile(w.envFile)
	vars, err := envfile.Parse(data)
	if err != nil {
		w.t.Fatal(err)
	}
	entries, err := f.Entries()
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name] = plainReference.ReplaceAllStringFunc(e.Env["GH_TOKEN"]+e.Env["TOKEN"], func(ref string) string {
			for _, known := range []config.Secrets{vars, w.stored} {
				if value, ok := known[ref[2:len(ref)-1]]; ok {
					return value
				}
			}
			return "unset"
		})
	}
	return all
}

func stdio(label, command, name, value string) string {
	return fmt.Sprintf("%q: {\"command\": %q, \"env\": {%q: %q}}", label, command, name, value)
}

func servers(all ...string) string { return `{"mcpServers": {` + strings.Join(all, ", ") + `}}` }

// step is an import, with what it expects of the values of the upstreams.
type step struct {
	store   bool
	clients []string
	before  func(w *world)
	want    string
}

// TestSecondImport: no variable is used for two values, and no secret of one server
// becomes the value of another, in whatever order clients are imported.
func TestSecondImport(t *testing.T) {
	a, b := servers(stdio("a", "srv-a", "GH_TOKEN", "value-of-a")), servers(stdio("b", "srv-b", "GH_TOKEN", "value-of-b"))
	other := servers(stdio("a", "srv-a", "GH_TOKEN", "another-value"))
	reads, elsewhere := servers(stdio("r", "srv-r", "GH_TOKEN", "${env:GH_TOKEN}")), servers(stdio("a", "srv-a", "GH_TOKEN", "${env:GH_TOKEN}"))
	for _, test := range []struct {
		name  string
		files map[string]string
		steps []step
	}{
		{"two servers, one after the other", map[string]string{"cursor": a, "windsurf": b}, []step{
			{true, []string{"cursor"}, nil, "a=value-of-a"}, {true, []string{"windsurf"}, nil, "a=value-of-a b=value-of-b"}, {true, nil, nil, "a=value-of-a b=value-of-b"}}},
		{"two servers at once", map[string]string{"cursor": a, "windsurf": b}, []step{{true, nil, nil, "a=value-of-a b=value-of-b"}}},
		{"the first without its value", map[string]string{"cursor": a, "windsurf": b}, []step{
			{false, []string{"cursor"}, nil, "a=unset"}, {true, []string{"windsurf"}, nil, "a=unset b=value-of-b"}, {true, []string{"cursor"}, nil, "a=value-of-a b=value-of-b"}}},
		{"the first client is gone", map[string]string{"cursor": a, "windsurf": b}, []step{
			{false, []string{"cursor"}, nil, "a=unset"}, {true, nil, func(w *world) { delete(w.clients, "cursor") }, "a=unset b=value-of-b"}}},
		{"one server with two values", map[string]string{"cursor": a, "windsurf": other}, []step{
			{true, []string{"cursor"}, nil, "a=value-of-a"}, {true, []string{"windsurf"}, nil, "a=value-of-a a-windsurf=another-value"}, {true, nil, nil, "a=value-of-a a-windsurf=another-value"}}},
		{"one server with two values, stored later", map[string]string{"cursor": a, "windsurf": other}, []step{
			{false, nil, nil, "a=unset a-windsurf=unset"}, {true, []string{"windsurf"}, nil, "a=unset a-windsurf=another-value"}, {true, []string{"cursor"}, nil, "a=value-of-a a-windsurf=another-value"}}},
		{"another value in the env file", map[string]string{"cursor": a}, []step{
			{true, nil, func(w *world) { w.write(w.envFile, "GH_TOKEN='mine-1'\n") }, "a=value-of-a"}}},
		{"a value in the env file for an upstream by hand", map[string]string{"cursor": b}, []step{
			{true, nil, func(w *world) {
				w.write(w.settings, "env_file: secrets.env\nupstreams:\n  mine: {command: x, env: {TOKEN: \"${GH_TOKEN}\"}}\n")
				w.write(w.envFile, "GH_TOKEN=mine-1\n")
			}, "b=value-of-b mine=mine-1"}}},
		{"an upstream by hand without a value", map[string]string{"cursor": b}, []step{
			{true, nil, func(w *world) {
				w.write(w.settings, "upstreams:\n  mine: {command: x, env: {TOKEN: \"${GH_TOKEN}\"}}\n")
			}, "b=value-of-b mine=unset"}}},
		{"the same upstream by hand, and another reader", map[string]string{"cursor": a}, []step{
			{true, nil, func(w *world) {
				w.write(w.settings, "upstreams:\n  a: {command: srv-a, env: {GH_TOKEN: \"${GH_TOKEN}\"}}\n  mine: {command: x, env: {TOKEN: \"${GH_TOKEN}\"}}\n")
			}, "a=unset mine=unset"}}},
		{"a token of the gateway", map[string]string{"cursor": a}, []step{
			{true, nil, func(w *world) { w.write(w.settings, "upstreams: {}\nhttp:\n  tokens: {ci: \"${GH_TOKEN}\"}\n") }, "a=value-of-a"}}},
		{"a client reads the variable", map[string]string{"cursor": reads, "windsurf": a}, []step{
			{true, nil, nil, "a=value-of-a r=unset"}, {true, nil, nil, "a=value-of-a r=unset"}}},
		{"a client reads it, later", map[string]string{"windsurf": a}, []step{
			{true, nil, nil, "a=value-of-a"}, {true, nil, func(w *world) { w.clients["cursor"] = reads }, "a=value-of-a r=unset"},
			{true, []string{"cursor"}, nil, "a=value-of-a r=unset"}}},
		{"a client reads it, and is imported later", map[string]string{"cursor": reads, "windsurf": a}, []step{
			{true, []string{"windsurf"}, nil, "a=value-of-a"}, {true, []string{"cursor"}, nil, "a=value-of-a r=unset"}}},
		{"the same server, with a value and without", map[string]string{"cursor": elsewhere, "windsurf": a}, []step{
			{true, nil, nil, "a=unset a-windsurf=value-of-a"}, {true, []string{"windsurf"}, nil, "a=unset a-windsurf=value-of-a"}}},
		{"the same server, stored later", map[string]string{"cursor": elsewhere, "windsurf": a}, []step{
			{false, []string{"cursor"}, nil, "a=unset"}, {true, []string{"windsurf"}, nil, "a=unset a-windsurf=value-of-a"}}},
		{"two servers with one value", map[string]string{"cursor": a, "windsurf": servers(stdio("b", "srv-b", "GH_TOKEN", "value-of-a"))}, []step{
			{false, nil, nil, "a=unset b=unset"}, {true, []string{"windsurf"}, nil, "a=value-of-a b=value-of-a"}}},
		{"another value in the environment", map[string]string{"cursor": a}, []step{
			{true, nil, nil, "a=value-of-a"}, {true, nil, func(w *world) { w.env["GH_TOKEN"] = "of-the-shell" }, "a=value-of-a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, maps.Clone(test.files))
			for i, s := range test.steps {
				if s.before != nil {
					s.before(w)
				}
				w.load(s.store, s.clients...)
				if got := w.line(); got != s.want {
					t.Fatalf("step %d: %s, want %s in\n%s", i, got, s.want, w.state())
				}
				once := w.state()
				if w.load(s.store, s.clients...); w.state() != once {
					t.Fatalf("step %d: twice is\n%s\nonce is\n%s", i, w.state(), once)
				}
			}
		})
	}
}

// line is tokens in one line.
func (w *world) line() string {
	all := w.tokens()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, name+"="+all[name])
	}
	return strings.Join(parts, " ")
}

// TestImportsKeepSecretsApart: after any imports of any clients, each server has its own
// secret or none, and another import changes nothing.
func TestImportsKeepSecretsApart(t *testing.T) {
	names := []string{"claude-desktop", "cursor", "gemini", "windsurf"}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, map[string]string{})
		if seed >= 60 {
			w.useKeyring()
		}
		want := map[string]map[string]string{} // by client and label
		for _, name := range names {
			w.clients[name], want[name] = someServers(random)
		}
		if random.IntN(4) == 0 {
			w.env["GH_TOKEN"] = fmt.Sprintf("value-%d", random.IntN(3))
		}
		for range 4 {
			some := slices.DeleteFunc(slices.Clone(names), func(string) bool { return random.IntN(2) == 0 })
			store := random.IntN(3) > 0
			rows := w.load(store, some...)
			w.check(rows, some, want, seed)
			once := w.state()
			if w.load(store, some...); w.state() != once {
				t.Fatalf("seed %d: twice is\n%s\nonce is\n%s", seed, w.state(), once)
			}
		}
		w.load(true)
		once := w.state()
		if w.load(true); w.state() != once {
			t.Fatalf("seed %d: all twice is\n%s\nonce is\n%s", seed, w.state(), once)
		}
	}
}

// someServers returns settings with servers of few names, commands and values, so that they clash.
func someServers(random *rand.Rand) (settings string, want map[string]string) {
	var all []string
	want = map[string]string{}
	for _, label := range []string{"a", "b", "gh"} {
		if random.IntN(3) == 0 {
			continue
		}
		variable := []string{"TOKEN", "GH_TOKEN"}[random.IntN(2)]
		value := fmt.Sprintf("value-%d", random.IntN(3))
		want[label] = value
		if random.IntN(3) == 0 {
			value, want[label] = "${"+[]string{"TOKEN", "GH_TOKEN", "A_TOKEN"}[random.IntN(3)]+"}", "unset"
		}
		all = append(all, stdio(label, fmt.Sprintf("srv-%d", random.IntN(2)), variable, value))
	}
	return servers(all...), want
}

// check compares the value that each imported server gets with the one that it has in its client.
func (w *world) check(rows []clients.Row, imported []string, want map[string]map[string]string, seed uint64) {
	w.t.Helper()
	got := w.tokens()
	if len(imported) == 0 {
		imported = slices.Sorted(maps.Keys(want))
	}
	at := 0
	for _, name := range imported {
		for _, label := range slices.Sorted(maps.Keys(want[name])) {
			if value := got[rows[at].Name]; value != "unset" && value != want[name][label] && (want[name][label] != "unset" || value != w.env["GH_TOKEN"]) {
				w.t.Fatalf("seed %d: %s of %s gets %s, not %s, as %s in\n%s\n%v", seed, label, name, value, want[name][label], rows[at].Name, w.state(), w.clients)
			}
			at++
		}
	}
}
