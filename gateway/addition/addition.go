// Package addition adds servers to the settings. A [Finder] looks a server up, [New] makes its entry of the values that a person
// gives, and a [SecretStore] stores secrets apart from the settings. The verb add and the dashboard use it.
package addition

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/registry"
	"sallyport/internal/secret"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// Options say how a server is added.
type Options struct {
	// Name is the name of the upstream; "" is the proposed one, or with a number the first one that is free.
	Name string
	// Description is what models read about the upstream; "" is that of a preset.
	Description string
	// Values are the values of the inputs, by their names.
	Values candidate.Values
	// Hosts are further hosts that its process may reach.
	Hosts []string
	// Headers are sent with every request to a URL.
	Headers settingsfile.Values
	// Bare runs its process without a sandbox.
	Bare bool
	// Store is where secrets are stored. Without one it is the env_file of the settings, else the keyring if there is one, else a file
	// next to the settings.
	Store SecretStore
	// Env has the variables that name the registries of packages.
	Env func(string) (string, bool)
}

// Addition is a server with the entry that adds it to a settings file.
type Addition struct {
	File  *settingsfile.File
	Found candidate.Candidate
	Made  candidate.Made
	Store SecretStore
}

// New makes the entry of a server. It changes nothing.
func New(file *settingsfile.File, found candidate.Candidate, opts Options) (*Addition, error) {
	a := &Addition{File: file, Found: found}
	if opts.Name == "" {
		var err error
		if opts.Name, err = freeName(file, found.Name); err != nil {
			return nil, err
		}
	}
	a.Store = a.store(opts)
	var err error
	a.Made, err = found.Entry(candidate.EntryOptions{
		Name: opts.Name, Values: opts.Values, Bare: opts.Bare, Hosts: opts.Hosts, Description: opts.Description, Reference: a.reference,
		Index: registry.Index(opts.Env, found.Package()),
	})
	if err != nil {
		return nil, err
	}
	return a, a.addHeaders(opts.Headers)
}

// addHeaders adds headers that a person gave to the entry.
func (a *Addition) addHeaders(headers settingsfile.Values) error {
	e := &a.Made.Entry
	switch {
	case len(headers) == 0:
		return nil
	case e.Egress != nil:
		return &tool.Error{Kind: tool.Invalid, Message: "--header is for a server with a URL", Hint: "add it without, and write header: below its host in " + a.File.Path}
	case !e.Remote():
		return &tool.Error{Kind: tool.Invalid, Message: "--header is for a server with a URL, and this one is a process", Hint: "leave it out"}
	case e.Headers == nil:
		e.Headers = settingsfile.Values{}
	}
	maps.Copy(e.Headers, headers)
	return nil
}

// store returns the place of secrets.
func (a *Addition) store(opts Options) SecretStore {
	set := a.File.EnvFile()
	given := func(in candidate.Input) bool { return in.Secret && len(opts.Values[in.Name]) > 0 }
	switch {
	case opts.Store.Keyring || opts.Store.EnvFile != "":
		return opts.Store
	case set == "" && slices.ContainsFunc(a.Found.Inputs, given) && secret.Check() == nil:
		return SecretStore{Keyring: true}
	}
	return SecretStore{EnvFile: cmp.Or(set, filepath.Join(filepath.Dir(a.File.Path), "secrets.env"))}
}

// reference returns the text that refers to a secret.
func (a *Addition) reference(variable string) string {
	if a.Store.Keyring {
		return "${keyring:" + variable + "}"
	}
	return "${" + variable + "}"
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

// Existing returns the name of the upstream that is the same server, "" for none; only matters if it is not "". An entry that was
// added before has other names of its variables, or the same ones.
func (a *Addition) Existing(only string) (string, error) {
	entries, err := a.File.Entries()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Same(a.Made.Entry) && (only == "" || e.Name == only) {
			return e.Name, nil
		}
	}
	return "", nil
}

// Secrets returns the secrets by the names under which they are stored.
func (a *Addition) Secrets() config.Secrets {
	if !a.Store.Keyring {
		return a.Made.Secrets
	}
	all := config.Secrets{}
	for name, value := range a.Made.Secrets {
		all["keyring:"+name] = value
	}
	return all
}
