// Package presets has well-known MCP servers as data files: how each is started, its variables, and its needs of this
// machine and of the network. The files of data/ have a server in the form of a registry's entry, and its needs.
package presets

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"sallyport/internal/packed"
	"sallyport/internal/registry"
)

//go:embed data/*.json
var files embed.FS

// Preset is a well-known server.
type Preset struct {
	// ID is the word by which it is added: the name of its file.
	ID string `json:"-"`
	// Publisher publishes its package, or runs it.
	Publisher string `json:"publisher"`
	// Server describes the server as a registry does.
	Server registry.Server `json:"server"`
	Needs
	// Started is the attempt to start it in a sandbox.
	Started Started `json:"started"`
}

// Needs are the files, hosts and limits of a server in its sandbox.
type Needs struct {
	// Hosts are the hosts that it reaches, in the form of isolate.hosts.
	Hosts []string `json:"hosts"`
	// Mounts are the arguments and variables that are folders of this machine, and how they are mounted: ro or rw.
	Mounts map[string]string `json:"mounts"`
	// Home is keep for a server that has files of its own from one start to the next.
	Home string `json:"home"`
	// Memory is isolate.limits.memory, if the default is too little.
	Memory string `json:"memory"`
	// Open means that it also needs hosts or files that depend on its user.
	Open bool `json:"open"`
	// Outside is the reason why it does not work in a sandbox as clients start it, "" for most servers.
	Outside string `json:"outside"`
	// Note is one more sentence for users.
	Note string `json:"note"`
}

// Started is the result of an attempt to start a server isolated, with values that are no real credentials.
type Started struct {
	// Version is the version of the package, Tools the number of tools that it listed.
	Version string `json:"version"`
	Tools   int    `json:"tools"`
	// Without is the reason why it was not started, or did not answer.
	Without string `json:"without"`
}

// All returns the presets in the order of their ids.
var All = sync.OnceValue(func() []Preset {
	list, err := files.ReadDir("data")
	if err != nil {
		panic(err) // the files are embedded, and a test reads them
	}
	var all []Preset
	for _, file := range list {
		p, err := read(file.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, p)
	}
	return all
})

func read(name string) (Preset, error) {
	p := Preset{ID: strings.TrimSuffix(name, ".json")}
	data, err := fs.ReadFile(packed.FS(files), path.Join("data", name))
	if err != nil {
		return p, fmt.Errorf("read preset: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, fmt.Errorf("read preset %s: %w", name, err)
	}
	return p, nil
}

// Find returns the preset with an id.
func Find(id string) (Preset, bool) {
	for _, p := range All() {
		if p.ID == id {
			return p, true
		}
	}
	return Preset{}, false
}

// OfPackage returns the preset of a package in a registry of a type, npm or pypi.
func OfPackage(kind, identifier string) (Preset, bool) {
	for _, p := range All() {
		for _, pack := range p.Server.Packages {
			if pack.RegistryType == kind && pack.Identifier == identifier {
				return p, true
			}
		}
	}
	return Preset{}, false
}

// Names returns the ids.
func Names() []string {
	var names []string
	for _, p := range All() {
		names = append(names, p.ID)
	}
	return names
}

// Packages returns the packages of all presets in registries of a type.
func Packages(kind string) (names []string) {
	for _, p := range All() {
		for _, pack := range p.Server.Packages {
			if pack.RegistryType == kind {
				names = append(names, pack.Identifier)
			}
		}
	}
	return names
}

// From returns the package or the address of the server: npm:NAME, pypi:NAME or a URL.
func (p Preset) From() string {
	if len(p.Server.Packages) > 0 {
		return p.Server.Packages[0].RegistryType + ":" + p.Server.Packages[0].Identifier
	}
	if len(p.Server.Remotes) > 0 {
		return p.Server.Remotes[0].URL
	}
	return ""
}
