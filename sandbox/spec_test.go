//go:build linux

package sandbox

import (
	"encoding/json"
	"path/filepath"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/internal/testutil/golden"
)

// TestSpec holds all that a sandbox is made of to a golden file: a change of it is a decision.
func TestSpec(t *testing.T) {
	usual := Job{ID: "e-1", Interpreter: Python, Limits: DefaultLimits()}
	tight := Job{ID: "e-2", Interpreter: Node, Limits: DefaultLimits(), Environment: "data"}
	tight.Limits.Memory, tight.Limits.Workspace, tight.Limits.Processes, tight.Limits.OpenFiles = 300<<20, 100<<20, 33, 44
	root := &rootfs{
		dir: "/state/host-1/root-0/rootfs", mounts: []specs.Mount{bind("/usr/bin", "/usr/bin"), bind("/usr/lib", "/usr/lib")}, path: "/usr/bin",
		programs: map[Interpreter]interpreter{Python: {"/usr/bin/python3.11", "/usr/bin/python3.11"}, Node: {"/home/me/node/bin/node", guestBin + "/node"}},
	}
	h := &Host{dir: "/state/host-1", environments: newEnvironments(map[string]Environment{"data": {NodePath: []string{"/node_modules"}}})}
	for name, job := range map[string]Job{"python": usual, "node": tight} {
		t.Run(name, func(t *testing.T) {
			job.Code = "never in the spec"
			got, err := h.specOf(kindOf(job), root, hostPaths{guest: h.guest(), servers: h.dir + "/servers-1", sockets: filepath.Join(h.dir, job.ID, "bridge")})
			must(t, err)
			golden.Check(t, filepath.Join("testdata", "spec", name+".json"), string(got)+"\n")
			checkSpec(t, got)
		})
	}
}

// checkSpec says what must hold whatever the golden files are updated to.
func checkSpec(t *testing.T, data []byte) {
	t.Helper()
	var spec specs.Spec
	must(t, json.Unmarshal(data, &spec))
	if !spec.Root.Readonly || !spec.Process.NoNewPrivileges || spec.Process.User.UID != nobodyID || len(spec.Process.Capabilities.Bounding) > 0 {
		t.Error("the process or its root is too free")
	}
	for _, mount := range spec.Mounts {
		options := map[string]bool{}
		for _, option := range mount.Options {
			options[option] = true
		}
		if mount.Type == "bind" && !(options["ro"] && options["nosuid"] && options["nodev"]) {
			t.Errorf("%s of the host can be written: %v", mount.Source, mount.Options)
		}
	}
}
