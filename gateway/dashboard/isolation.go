package dashboard

import (
	"maps"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
)

// IsolationView is what an isolated upstream may use, and what it was refused.
type IsolationView struct {
	// Image is the OCI image that it runs, "" for programs of this machine.
	Image  string
	Hosts  []HostView
	Mounts []config.IsolationMount
	// KeepsHome says that its home folder outlives the process.
	KeepsHome bool
	Memory    int64
	Limits    config.IsolationLimits
	// Refused are lines about hosts that its present process asked for, with the setting that would allow each.
	Refused []string
	// Profile is the command that finds what it needs.
	Profile string
}

// HostView is a host that it may reach.
type HostView struct {
	Name string
	// Private says that the host may have an address of a private network.
	Private bool
	// Header are the names of the header fields that the gateway sets, without their values.
	Header []string
}

// isolationOf returns nil for an upstream that is not isolated.
func (p UpstreamPage) isolationOf(set *config.Isolation) *IsolationView {
	if set == nil {
		return nil
	}
	v := &IsolationView{
		Image: set.Image, Mounts: set.Mounts, KeepsHome: set.Home == config.HomeKeep, Memory: int64(set.Limits.Memory), Limits: set.Limits,
		Hosts: append(hostViews(set.Hosts, false), hostViews(set.PrivateHosts, true)...), Refused: refusals(p.State.Stderr),
	}
	v.Profile = "sallyport upstreams profile " + p.Name
	return v
}

func hostViews(hosts []config.IsolationHost, private bool) (all []HostView) {
	for _, h := range hosts {
		all = append(all, HostView{Name: h.Name, Private: private, Header: slices.Sorted(maps.Keys(h.Header))})
	}
	return all
}

// maxRefusals is how many refusals are listed, the last ones.
const maxRefusals = 20

// refusals returns the lines of a log about refused hosts, each once. The process could write such a line itself, which tells no more
// than an attempt to reach the host would.
func refusals(log string) (all []string) {
	for line := range strings.Lines(log) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "sallyport: refused ")
		if line = sanitize.Line(line, 300); ok && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all[max(0, len(all)-maxRefusals):]
}
