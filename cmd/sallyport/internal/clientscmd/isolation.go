package clientscmd

import (
	"io/fs"
	"os"
	"runtime"
	"strings"

	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/registry"
	"sallyport/internal/settingsfile"
	"sallyport/sandbox/egress"
)

// whatItNeeds says how to allow what a server in a sandbox was refused.
const whatItNeeds = "what an isolated server was refused is in sallyport upstreams logs NAME; sallyport upstreams profile NAME finds what it needs"

// isolates reports whether upstreams of the settings can run in sandboxes: those are on this machine, and it has them.
func isolates(f *settingsfile.File) bool {
	cfg, err := f.Config()
	return runtime.GOOS == "linux" && (err != nil || cfg.Sandbox.Remote == "")
}

// isolate is [candidate.Machine.Isolate], with a note. It isolates no server that needs hosts, if this machine cannot give it a network.
func (a *app) isolate(e settingsfile.Entry) (isolated settingsfile.Entry, note string, open bool) {
	machine := candidate.Machine{Index: func(kind string) string { return registry.Index(a.Env, kind) }, Getenv: a.Env, Stat: stat}
	made := machine.Isolate(e)
	set := made.Entry.Isolate
	if set == nil {
		return e, notIsolated(made.Reason), false
	}
	if made.Open || len(set.Hosts)+len(set.PrivateHosts) > 0 {
		if err := egress.Available(); err != nil {
			return e, notIsolated(err.Error()), false
		}
	}
	note = "isolated: reaches " + reachText(set)
	if made.Open {
		note += "; may need more"
	}
	return made.Entry, note, made.Open
}

func notIsolated(reason string) string {
	if reason == "" {
		return ""
	}
	return "not isolated: " + reason
}

func stat(path string) (mode fs.FileMode, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode(), true
}

// reachText says what an isolated process reaches.
func reachText(set *settingsfile.EntryIsolation) string {
	reached := set.HostNames()
	for _, host := range set.PrivateHosts {
		reached = append(reached, host.Name)
	}
	for _, m := range set.Mounts {
		if m.Mode != config.MountWritable {
			m.Path += " (read-only)"
		}
		reached = append(reached, m.Path)
	}
	if len(reached) == 0 {
		return "no hosts and no files"
	}
	return strings.Join(reached, ", ")
}
