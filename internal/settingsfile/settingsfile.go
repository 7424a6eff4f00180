// Package settingsfile edits the settings file: its upstreams and some other keys, without a change of what is around them.
package settingsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/atomicfile"
	"sallyport/internal/config"
	"sallyport/internal/secretstore"
	"sallyport/internal/yamledit"

	"gopkg.in/yaml.v3"
)

// Entry is an upstream in the form of the file: references are not resolved, and
// empty fields are omitted. Secrets are references.
type Entry struct {
	Name        string          `yaml:"-"`
	Description string          `yaml:"description,omitempty"`
	Command     string          `yaml:"command,omitempty"`
	Args        []string        `yaml:"args,omitempty,flow"`
	Env         Values          `yaml:"env,omitempty"`
	Dir         string          `yaml:"cwd,omitempty"`
	Isolate     *EntryIsolation `yaml:"isolate,omitempty"`
	URL         string          `yaml:"url,omitempty"`
	Headers     Values          `yaml:"headers,omitempty"`
	Socket      string          `yaml:"socket,omitempty"`
	Transport   string          `yaml:"transport,omitempty"`
	Auth        *EntryAuth      `yaml:"auth,omitempty"`
	OpenAPI     string          `yaml:"openapi,omitempty"`
	GraphQL     string          `yaml:"graphql,omitempty"`
	GRPC        string          `yaml:"grpc,omitempty"`
	Egress      *EntryEgress    `yaml:"egress,omitempty"`
	Query       Values          `yaml:"query,omitempty"`
	Include     []string        `yaml:"include,omitempty,flow"`
	Exclude     []string        `yaml:"exclude,omitempty,flow"`
	Timeout     string          `yaml:"timeout,omitempty"`
	Disabled    bool            `yaml:"disabled,omitempty"`
}

// Values are texts by name, such as an environment or headers.
type Values map[string]string

// EntryAuth is the part of [config.Auth] that other programs' settings have.
type EntryAuth struct {
	Type         string   `yaml:"type,omitempty"`
	ClientID     string   `yaml:"client_id,omitempty"`
	ClientSecret string   `yaml:"client_secret,omitempty"`
	Scopes       []string `yaml:"scopes,omitempty,flow"`
	RedirectPort int      `yaml:"redirect_port,omitempty"`
}

// EntryIsolation is a [config.Isolation] in the form of the file. The zero value is written as true.
type EntryIsolation struct {
	Image  string       `yaml:"image,omitempty"`
	Mounts []EntryMount `yaml:"mounts,omitempty"`
	Hosts  []EntryHost  `yaml:"hosts,omitempty,flow"`
	// PrivateHosts are such hosts with an address of a private network.
	PrivateHosts []EntryHost       `yaml:"private_hosts,omitempty,flow"`
	Home         string            `yaml:"home,omitempty"`
	Registry     string            `yaml:"registry,omitempty"`
	Limits       map[string]string `yaml:"limits,omitempty,flow"`
	// off: the file has false.
	off bool
}

// EntryMount is a [config.IsolationMount] in the form of the file.
type EntryMount struct {
	Path string `yaml:"path"`
	Mode string `yaml:"mode,omitempty"`
}

// MarshalYAML returns true for the zero value, else the mapping.
func (i EntryIsolation) MarshalYAML() (any, error) {
	if i.off {
		return false, nil
	}
	if len(i.Mounts)+len(i.Hosts)+len(i.PrivateHosts)+len(i.Limits) == 0 && i.Image+i.Home+i.Registry == "" {
		return true, nil
	}
	type plain EntryIsolation
	return plain(i), nil
}

// UnmarshalYAML reads true, false or a mapping.
func (i *EntryIsolation) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var on bool
		err := n.Decode(&on)
		i.off = !on
		return err
	}
	type plain EntryIsolation
	return n.Decode((*plain)(i))
}

// EntryHost is a [config.IsolationHost] in the form of the file: a text if it has no header.
type EntryHost struct {
	Name   string `yaml:"name"`
	Header Values `yaml:"header,omitempty"`
}

// MarshalYAML returns the name, or the mapping.
func (h EntryHost) MarshalYAML() (any, error) {
	if len(h.Header) == 0 {
		return h.Name, nil
	}
	type plain EntryHost
	return plain(h), nil
}

// UnmarshalYAML reads a name or a mapping.
func (h *EntryHost) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&h.Name)
	}
	type plain EntryHost
	return n.Decode((*plain)(h))
}

// EntryEgress are the hosts of a [webaccess.Access] in the form of the file.
type EntryEgress struct {
	Hosts        []EntryHost `yaml:"hosts,omitempty,flow"`
	PrivateHosts []EntryHost `yaml:"private_hosts,omitempty,flow"`
}

// NewEgress returns an entry with hosts, nil without any.
func NewEgress(names []string) *EntryEgress {
	var e EntryEgress
	for _, name := range names {
		e.Hosts = append(e.Hosts, EntryHost{Name: Escape(name)})
	}
	if e.Hosts == nil {
		return nil
	}
	return &e
}

// HostNames returns the names of all hosts, none for nil.
func (e *EntryEgress) HostNames() (names []string) {
	if e != nil {
		for _, host := range slices.Concat(e.Hosts, e.PrivateHosts) {
			names = append(names, host.Name)
		}
	}
	return names
}

// HostNames returns the names of the hosts, none for nil.
func (i *EntryIsolation) HostNames() (names []string) {
	if i != nil {
		for _, host := range i.Hosts {
			names = append(names, host.Name)
		}
	}
	return names
}

// Image returns the OCI image of the entry, "" for none.
func (e Entry) Image() string {
	if e.Isolate == nil {
		return ""
	}
	return e.Isolate.Image
}

// Remote reports whether requests to the entry go to a URL: it is no process of this machine.
func (e Entry) Remote() bool { return e.URL+e.OpenAPI+e.GraphQL+e.GRPC != "" }

// Same reports whether two entries reach the same server in the same way,
// whatever they are called and however they are limited.
func (e Entry) Same(o Entry) bool {
	transport := func(t string) string {
		if t == "auto" {
			return ""
		}
		return t
	}
	return e.Command == o.Command && e.Image() == o.Image() && slices.Equal(e.Args, o.Args) && maps.Equal(e.Env, o.Env) && e.Dir == o.Dir &&
		slices.Equal(e.Egress.HostNames(), o.Egress.HostNames()) && e.URL == o.URL && e.OpenAPI == o.OpenAPI && e.GraphQL == o.GraphQL && e.GRPC == o.GRPC && maps.Equal(e.Query, o.Query) && maps.Equal(e.Headers, o.Headers) && e.Socket == o.Socket && transport(e.Transport) == transport(o.Transport)
}

// File is a settings file that is edited in memory. Save writes it. Edits change only
// the bytes of the added or removed entry.
type File struct {
	// Path is the path of the file, Data the edited content.
	Path   string
	Data   []byte
	old    []byte
	getenv func(string) (string, bool)
}

// Open reads a file for editing; a missing file is empty. It returns the errors of an
// invalid file, except for references without a value.
func Open(path string, getenv func(string) (string, bool)) (*File, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Path: path, getenv: getenv}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("edit config: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	f := &File{Path: path, Data: data, old: data, getenv: getenv}
	return f, f.check(data)
}

// check parses data as it would be loaded if every reference had a value.
func (f *File) check(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	_, err := f.parse(data)
	return err
}

func (f *File) parse(data []byte) (*config.Config, error) {
	stored := func(string) (string, error) { return config.Placeholder, nil }
	nothing := func(string) ([]byte, error) { return nil, nil }
	return config.Sources{Getenv: f.lookup, File: stored, EnvFile: nothing, Keyring: stored, Managers: secretstore.Fixed(config.Placeholder)}.Parse(f.Path, data)
}

// Config returns the settings as if every reference had a value. They can be shown,
// but not used to connect.
func (f *File) Config() (*config.Config, error) { return f.parse(f.Data) }

func (f *File) lookup(name string) (string, bool) {
	if f.getenv != nil {
		if value, ok := f.getenv(name); ok && value != "" {
			return value, true
		}
	}
	return config.Placeholder, true
}

// Entries returns the upstreams of the file in its order.
func (f *File) Entries() ([]Entry, error) {
	var doc struct {
		Upstreams yaml.Node `yaml:"upstreams"`
	}
	if err := yaml.Unmarshal(f.Data, &doc); err != nil {
		return nil, fmt.Errorf("edit config: %w", err)
	}
	var all []Entry
	for i := 0; i+1 < len(doc.Upstreams.Content); i += 2 {
		e := Entry{Name: doc.Upstreams.Content[i].Value}
		if err := doc.Upstreams.Content[i+1].Decode(&e); err != nil {
			return nil, fmt.Errorf("edit config: %w", err)
		}
		all = append(all, e)
	}
	return all, nil
}

// Add appends an entry. If the result would not load, it returns an error and does not
// change the file.
func (f *File) Add(e Entry) error {
	data, err := yamledit.Add(f.Data, "upstreams", e.Name, e)
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return f.setData(data)
}

// EnvFile returns the absolute path of the file that env_file names, "" for none.
func (f *File) EnvFile() string {
	if len(f.Data) == 0 {
		return ""
	}
	c, err := f.parse(f.Data)
	if err != nil {
		return ""
	}
	return c.EnvFile
}

// SetEnvFile sets the key env_file, which must not exist yet. A path below the file's
// directory is written as a relative path.
func (f *File) SetEnvFile(file string) error {
	dir, err := filepath.Abs(filepath.Dir(f.Path))
	if err != nil {
		return fmt.Errorf("edit config: %w", err)
	}
	if file, err = filepath.Abs(file); err != nil {
		return fmt.Errorf("edit config: %w", err)
	}
	if near, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(near) {
		file = near
	}
	data, err := yamledit.Put(f.Data, "env_file", strings.ReplaceAll(file, "$", "$$"))
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return f.setData(data)
}

// SetRemote sets sandbox.remote to the address of a machine; "" removes the key. A missing file gets an empty list of
// upstreams too.
func (f *File) SetRemote(address string) error {
	data, err := f.withRemote(address)
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return f.setData(data)
}

func (f *File) withRemote(address string) ([]byte, error) {
	data := f.Data
	if len(data) == 0 {
		data = []byte("upstreams: {}\n")
	}
	if address == "" {
		made, err := yamledit.Unset(data, "sandbox", "remote")
		if errors.Is(err, yamledit.ErrMissing) {
			return data, nil
		}
		return made, err
	}
	value, err := yamledit.Inline(address)
	if err != nil {
		return nil, err
	}
	made, err := yamledit.SetKey(data, value, "sandbox", "remote")
	if errors.Is(err, yamledit.ErrMissing) {
		return yamledit.Add(data, "sandbox", "remote", address)
	}
	return made, err
}

// Remove removes an entry, with the comment directly above it.
func (f *File) Remove(name string) error {
	data, err := yamledit.Remove(f.Data, "upstreams", name)
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return f.setData(data)
}

// SetKey sets a key of an upstream, such as timeout, or env and a name, to a value, which is YAML in one line. The rest of the file is
// not changed.
func (f *File) SetKey(name, value string, keys ...string) error {
	if err := f.has(name); err != nil {
		return err
	}
	data, err := yamledit.SetKey(f.Data, value, append([]string{"upstreams", name}, keys...)...)
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return f.setData(data)
}

// UnsetKey removes a key of an upstream. A missing key is no error.
func (f *File) UnsetKey(name string, keys ...string) error {
	if err := f.has(name); err != nil {
		return err
	}
	data, err := yamledit.Unset(f.Data, append([]string{"upstreams", name}, keys...)...)
	if errors.Is(err, yamledit.ErrMissing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return f.setData(data)
}

// has returns an error that is [yamledit.ErrMissing] if there is no upstream of that name.
func (f *File) has(name string) error {
	all, err := f.Entries()
	if err == nil && !slices.ContainsFunc(all, func(e Entry) bool { return e.Name == name }) {
		err = fmt.Errorf("%q %w", name, yamledit.ErrMissing)
	}
	return err
}

func (f *File) setData(data []byte) error {
	if err := f.check(data); err != nil {
		return err
	}
	f.Data = data
	return nil
}

// Changed reports whether Save has something to write.
func (f *File) Changed() bool { return string(f.Data) != string(f.old) }

// Save writes the file atomically.
func (f *File) Save() error {
	if !f.Changed() {
		return nil
	}
	if _, err := atomicfile.Write(f.Path, f.old, f.Data, nil); err != nil {
		return fmt.Errorf("save config: %w", err)
	}
	f.old = f.Data
	return nil
}

// Texts returns all texts of the entry that may have references.
func (e Entry) Texts() []string {
	all := []string{e.Description, e.Command, e.Dir, e.URL, e.Socket, e.OpenAPI, e.GraphQL, e.GRPC}
	all = append(all, e.Args...)
	values := []Values{e.Env, e.Headers, e.Query}
	if e.Isolate != nil {
		values = append(values, headersOf(e.Isolate.Hosts, e.Isolate.PrivateHosts)...)
	}
	if e.Egress != nil {
		values = append(values, headersOf(e.Egress.Hosts, e.Egress.PrivateHosts)...)
	}
	for _, values := range values {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			all = append(all, values[name])
		}
	}
	if e.Auth != nil {
		all = append(all, e.Auth.ClientID, e.Auth.ClientSecret)
		all = append(all, e.Auth.Scopes...)
	}
	return all
}

func headersOf(hosts ...[]EntryHost) (headers []Values) {
	for _, host := range slices.Concat(hosts...) {
		headers = append(headers, host.Header)
	}
	return headers
}
