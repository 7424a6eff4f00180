//go:build linux

package sandbox

import (
	"encoding/json"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/sandbox/runsc"
)

// FuzzRoot: whatever an environment's settings say, what reaches config.json is ours: absolute and
// clean destinations, nothing over or under the sandbox's own mounts, nothing of the
// host that can be written, and JSON that says the same after it was read again.
func FuzzRoot(f *testing.F) {
	for _, seed := range [][2]string{
		{"/opt/layers/python", "/usr/share/doc"}, {"/servers/evil", "/servers"}, {"/", "/"}, {"/a/../../etc", "/usr/bin/../../etc"}, {"relative", "relative"},
		{"/usr/lib/\xff", "/usr/lib/\xff"}, {"/opt/a\nb", "/usr/share/\x00"}, {"/opt/\u2028", "/proc/self"}, {"/run", "/run/sallyport"}, {"/tmp/x", "/usr/bin/python3"}, {"//opt//x", "/usr//lib"}, {"/opt/sallyport/guest.py", "/usr"},
		{`/opt/","type":"bind","x":"`, `/usr/share/"}`}, {"/" + strings.Repeat("a/", 100), "/" + strings.Repeat("../", 100) + "etc"},
	} {
		f.Add(seed[0], seed[1])
	}
	base := f.TempDir()
	layer := filepath.Join(base, "layer")
	if err := os.Mkdir(layer, 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at, masked string) {
		if len(at)+len(masked) > 2000 {
			return
		}
		dir, err := os.MkdirTemp(base, "root-") //nolint:usetesting // one for each input, removed at once
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		h := &Host{dir: filepath.Join(base, "host"), log: slog.New(slog.DiscardHandler), runsc: &runsc.Runsc{Path: "/bin/runsc"}}
		r, err := h.root(dir, Environment{Layers: map[string]string{at: layer}, Masked: []string{masked}})
		checkBeside(t, base, dir)
		if err != nil {
			return
		}
		spec := specs.Spec{Root: &specs.Root{Path: r.dir, Readonly: true}, Mounts: r.mounts}
		checkRoot(t, spec, dir, layer)
	})
}

// checkBeside: laying out a root writes nothing beside it.
func checkBeside(t *testing.T, base, dir string) {
	t.Helper()
	entries, err := os.ReadDir(base)
	must(t, err)
	for _, entry := range entries {
		if name := entry.Name(); name != "layer" && !strings.HasPrefix(name, "root-") {
			t.Errorf("%s was made beside %s", name, dir)
		}
	}
	if inLayer, err := os.ReadDir(filepath.Join(base, "layer")); err != nil || len(inLayer) > 0 {
		t.Errorf("the layer has %v, %v", inLayer, err)
	}
}

func checkRoot(t *testing.T, spec specs.Spec, dir, layer string) {
	t.Helper()
	data, err := json.Marshal(spec)
	must(t, err)
	var again specs.Spec
	must(t, json.Unmarshal(data, &again))
	if !reflect.DeepEqual(spec, again) {
		t.Errorf("JSON says something else: %+v and %+v", spec.Mounts, again.Mounts)
	}
	for _, mount := range spec.Mounts {
		to, from := mount.Destination, mount.Source
		if !path.IsAbs(to) || path.Clean(to) != to || to == "/" || strings.ContainsRune(to, 0) {
			t.Errorf("a mount at %q", to)
		}
		for _, own := range MountPoints() {
			if within(to, own) || within(own, to) {
				t.Errorf("a mount at %q, where ours is at %q", to, own)
			}
		}
		ours := from == layer || within(from, dir) || slices.Contains(systemDirs, from) || mount.Type == "tmpfs"
		if !ours && !isInterpreter(from) {
			t.Errorf("%q of the host is mounted at %q", from, to)
		}
		if mount.Type == "bind" && !(slices.Contains(mount.Options, "ro") && slices.Contains(mount.Options, "nosuid") && slices.Contains(mount.Options, "nodev")) {
			t.Errorf("%q can be written: %v", to, mount.Options)
		}
	}
}

// isInterpreter says whether that is what this machine has as one.
func isInterpreter(file string) bool {
	for _, names := range [][]string{{"/usr/bin/python3", "python3"}, {"/usr/bin/node", "node", "nodejs"}} {
		if found, err := findInterpreter("", "", names...); err == nil && found.path == file {
			return true
		}
	}
	return false
}
