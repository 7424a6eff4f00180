package isolation

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sallyport/internal/config"
	"sallyport/internal/hostrule"
	"sallyport/internal/mountrule"
	"sallyport/sandbox"
	"sallyport/sandbox/checkpoint"
	"sallyport/sandbox/egress"
)

// Profile collects what the processes of a launcher were refused. It is safe for concurrent use.
type Profile struct {
	dir string

	mu     sync.Mutex
	hosts  map[bool]map[string]bool // by whether they are private
	script map[string]bool          // folders of scripts
	traces []string
}

// NewProfile returns an empty profile, which keeps traces in a directory until its Close.
func NewProfile() (*Profile, error) {
	dir, err := os.MkdirTemp("", "sallyport-profile-")
	if err != nil {
		return nil, fmt.Errorf("make directory for a profile: %w", err)
	}
	return &Profile{dir: dir, hosts: map[bool]map[string]bool{false: {}, true: {}}, script: map[string]bool{}}, nil
}

// Close removes the traces.
func (p *Profile) Close() error { return os.RemoveAll(p.dir) }

// trace returns a new directory for a trace.
func (p *Profile) trace() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	dir := filepath.Join(p.dir, strconv.Itoa(len(p.traces)))
	if os.Mkdir(dir, 0o700) != nil {
		return ""
	}
	p.traces = append(p.traces, dir)
	return dir + "/"
}

// refused adds a host.
func (p *Profile) refused(r egress.Refusal) {
	if allow := strings.TrimSuffix(r.Allow, ":443"); hostrule.Host(allow) == "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hosts[r.Private][allow] = true
	}
}

// show adds the folder of a script, without which the process cannot start.
func (p *Profile) show(dir string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.script[dir]
	p.script[dir] = true
	return !known
}

// Needs returns the settings that allow what was refused. Call it after the processes have ended.
func (p *Profile) Needs() (config.Isolation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	needs := config.Isolation{Hosts: hosts(p.hosts[false]), PrivateHosts: hosts(p.hosts[true])}
	writable := map[string]bool{}
	for dir := range p.script {
		writable[dir] = false
	}
	for _, dir := range p.traces {
		used, err := checkpoint.ReadTrace(dir, sandbox.HomeDir)
		if err != nil {
			return needs, err
		}
		for _, path := range used.Missing {
			if at := existing(path); mountrule.Problem(at) == "" && !within(at, sandbox.HomeDir) && !within(at, "/usr") { // all look in /usr/local
				writable[at] = writable[at] || slices.Contains(used.Written, path)
			}
		}
		if slices.ContainsFunc(used.Written, func(path string) bool { return within(path, sandbox.HomeDir) }) {
			needs.Home = config.HomeKeep
		}
	}
	needs.Mounts = mounts(writable)
	return needs, nil
}

func hosts(names map[string]bool) (all []config.IsolationHost) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, config.IsolationHost{Name: name})
	}
	return all
}

// existing returns a path of this machine, or its parent if only that exists, "" if neither does.
func existing(path string) string {
	for _, at := range []string{path, filepath.Dir(path)} {
		if _, err := os.Stat(at); err == nil {
			return at
		}
	}
	return ""
}

// mounts returns the mounts of paths, without those that are in others.
func mounts(writable map[string]bool) (all []config.IsolationMount) {
	for _, at := range slices.SortedFunc(maps.Keys(writable), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) {
		i := slices.IndexFunc(all, func(m config.IsolationMount) bool { return within(at, m.Path) })
		switch {
		case i < 0 && writable[at]:
			all = append(all, config.IsolationMount{Path: at, Mode: config.MountWritable})
		case i < 0:
			all = append(all, config.IsolationMount{Path: at, Mode: config.MountReadOnly})
		case writable[at]:
			all[i].Mode = config.MountWritable
		}
	}
	slices.SortFunc(all, func(a, b config.IsolationMount) int { return cmp.Compare(a.Path, b.Path) })
	return all
}
