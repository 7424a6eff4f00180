package config

import (
	"fmt"
	"slices"
	"time"

	"sallyport/internal/hostrule"
	"sallyport/internal/imageref"
	"sallyport/internal/mountrule"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// Isolation configures the sandbox of an upstream's process.
type Isolation struct {
	// Mounts are files and folders of this machine that the process sees at the same path; default none.
	Mounts []IsolationMount
	// Hosts are the hosts that it may reach by name, as api.example.com (port 443), api.example.com:8443 or *.example.com; default none.
	Hosts []IsolationHost
	// PrivateHosts are such hosts with an address of a private network or of this machine; default none.
	PrivateHosts []IsolationHost
	// Home is where its home folder is: in memory until the process ends (memory), or in the data directory (keep); default memory.
	Home string
	// Image is an OCI image to run in place of programs of this machine: NAME@sha256:DIGEST, or NAME:TAG, which then means its first
	// digest. It runs as by docker run: args replace its arguments, and command its entry point. Default none.
	Image string `json:",omitempty"`
	// Registry is the URL of the npm registry for npx, or of the package index for uvx; default that of npm or pip.
	Registry string
	// Checkpoint is whether the process starts from its state after an earlier start, before it was initialized; default true.
	Checkpoint bool
	// Limits bound the process and its children.
	Limits IsolationLimits
}

// IsolationHost is a host that the process of an upstream may reach.
type IsolationHost struct {
	// Name is its name, or NAME:PORT.
	Name string
	// Header fields that the gateway sets in each request to the host, over https, so that the process does not have the values; default none.
	Header Secrets
}

// IsolationMount is a file or folder of this machine that the process of an upstream sees.
type IsolationMount struct {
	// Path is its path, here and in the sandbox.
	Path string
	// Mode is whether it can only be read (ro), or also be changed (rw); default ro.
	Mode string
}

// IsolationLimits bound the sandbox of an upstream's process. A process that exceeds memory or cpu is stopped.
type IsolationLimits struct {
	// Memory is what all of its processes may use together, with their files in memory; default 512MiB.
	Memory Size
	// Processes bounds processes and threads; default 128.
	Processes int
	// CPU is the processor time in each hour; default 30m.
	CPU time.Duration
}

// The modes of mounts and homes.
const (
	MountReadOnly = "ro"
	MountWritable = "rw"
	HomeMemory    = "memory"
	HomeKeep      = "keep"
)

// DefaultIsolation returns the settings of isolate: true.
func DefaultIsolation() *Isolation {
	return &Isolation{Home: HomeMemory, Checkpoint: true, Limits: IsolationLimits{Memory: 512 * MiB, Processes: 128, CPU: 30 * time.Minute}}
}

// isolation reads true, false or a mapping, and reports whether the process is isolated.
func (d *decoder) isolation(at path, n *yaml.Node, i *Isolation) bool {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" {
		on := true
		scalar(d, &on, yamlstrict.Bool)(at, n)
		return on
	}
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" && d.Allowed(at, n) {
		d.Fail(at, n, "%s must be true, false or a mapping, not %s", label(at), yamlstrict.Describe(n))
		return true
	}
	d.Fields(at, n, []key{
		{"mounts", func(at path, n *yaml.Node) { i.Mounts = yamlstrict.List(d.Decoder, at, n, d.isolationMount) }},
		{"hosts", func(at path, n *yaml.Node) { i.Hosts = yamlstrict.List(d.Decoder, at, n, hostDecoder{d}.host) }},
		{"private_hosts", func(at path, n *yaml.Node) { i.PrivateHosts = yamlstrict.List(d.Decoder, at, n, hostDecoder{d}.host) }},
		{"home", d.OneOf(&i.Home, HomeMemory, HomeKeep)},
		{"image", d.Text(&i.Image)},
		{"registry", d.Text(&i.Registry)},
		{"checkpoint", scalar(d, &i.Checkpoint, yamlstrict.Bool)},
		{"limits", func(at path, n *yaml.Node) {
			d.Fields(at, n, []key{
				{"memory", scalar(d, &i.Limits.Memory, parseSize)},
				{"processes", scalar(d, &i.Limits.Processes, yamlstrict.Count)},
				{"cpu", scalar(d, &i.Limits.CPU, yamlstrict.Duration)},
			})
		}},
	})
	return true
}

func (d *decoder) isolationMount(at path, n *yaml.Node, m *IsolationMount) {
	m.Mode = MountReadOnly
	d.Fields(at, n, []key{
		{"path", homePath(d, &m.Path)},
		{"mode", d.OneOf(&m.Mode, MountReadOnly, MountWritable)},
	})
}

// hostDecoder reads hosts.
type hostDecoder struct{ *decoder }

// host reads a name, or a mapping.
func (d hostDecoder) host(at path, n *yaml.Node, h *IsolationHost) {
	if n.Kind == yaml.ScalarNode {
		d.Text(&h.Name)(at, n)
		return
	}
	d.Fields(at, n, []key{{"name", d.Text(&h.Name)}, {"header", d.secrets(&h.Header)}})
}

// isolationProblems returns the problems of the key isolate.
func (u Upstream) isolationProblems(at path) (all []problem) {
	i := u.Isolate
	if i == nil {
		return nil
	}
	all = slices.Concat(i.Limits.problems(at.To("limits")), i.hostProblems(at),
		oneOfProblem(at.To("home"), i.Home, []string{HomeMemory, HomeKeep}))
	for n, mount := range i.Mounts {
		all = append(all, mount.problems(at.To("mounts").Item(n), i.Mounts[:n])...)
	}
	switch {
	case i.Image != "" && !imageref.Valid(i.Image):
		all = append(all, problem{at: at.To("image"), message: `an image is NAME@sha256:DIGEST or NAME:TAG, as in ghcr.io/owner/server:1.2.3`})
	case i.Image != "" && i.Registry != "":
		all = append(all, problem{at: at.To("registry"), onKey: true, message: `"registry" is for packages; the registry of an image is part of its name`})
	case i.Registry != "" && len(urlProblems(nil, i.Registry)) > 0:
		all = append(all, problem{at: at.To("registry"), message: `"registry" must be an https:// or http:// URL`})
	}
	return all
}

// PutsHeaders reports whether requests of the process get header fields from the gateway.
func (i Isolation) PutsHeaders() bool {
	return slices.ContainsFunc(slices.Concat(i.Hosts, i.PrivateHosts), func(h IsolationHost) bool { return len(h.Header) > 0 })
}

func (m IsolationMount) problems(at path, before []IsolationMount) []problem {
	under := at.To("path")
	switch {
	case m.Path == "":
		return []problem{{at: at, message: `a mount needs a "path"`}}
	case mountrule.Problem(m.Path) != "":
		return []problem{{at: under, message: mountrule.Problem(m.Path)}}
	case slices.ContainsFunc(before, func(other IsolationMount) bool { return other.Path == m.Path }):
		return []problem{{at: under, message: fmt.Sprintf("%.200q is mounted twice", m.Path)}}
	}
	return append(oneOfProblem(at.To("mode"), m.Mode, []string{MountReadOnly, MountWritable}), noNUL(under, m.Path)...)
}

func (l IsolationLimits) problems(at path) []problem {
	return slices.Concat(
		between(at.To("memory"), l.Memory, 64*MiB, 64*GiB),
		between(at.To("processes"), l.Processes, 8, 4096),
		between(at.To("cpu"), l.CPU, time.Second, 24*time.Hour),
	)
}

// MarshalText returns the name.
func (h IsolationHost) MarshalText() ([]byte, error) { return []byte(h.Name), nil }

// HostNames returns the names of hosts.
func HostNames(hosts []IsolationHost) (names []string) {
	for _, host := range hosts {
		names = append(names, host.Name)
	}
	return names
}

func (i Isolation) hostProblems(at path) (all []problem) {
	names := HostNames(slices.Concat(i.Hosts, i.PrivateHosts))
	for n, host := range i.Hosts {
		all = append(all, host.problems(at.To("hosts").Item(n), names)...)
	}
	for n, host := range i.PrivateHosts {
		all = append(all, host.problems(at.To("private_hosts").Item(n), names)...)
	}
	return all
}

func (h IsolationHost) problems(at path, names []string) []problem {
	message := hostrule.Host(h.Name)
	switch {
	case h.Name == "":
		message = `a host needs a "name"`
	case message == "" && len(h.Header) > 0:
		message = hostrule.One(h.Name, names)
	}
	if message != "" {
		return []problem{{at: at.To("name"), fallback: at, message: message}}
	}
	all := headerProblems(at.To("header"), h.Header)
	for _, name := range sortedKeys(h.Header) {
		if message := hostrule.Field(name, h.Header[name]); message != "" {
			all = append(all, problem{at: at.To("header").To(name), message: message})
		}
	}
	return all
}
