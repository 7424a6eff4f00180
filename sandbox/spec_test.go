//go:build linux

package sandbox

import (
	"encoding/json"
	"path/filepath"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"sallyport/internal/testutil/golden"
	"sallyport/sandbox/runsc"
)

func specHost(python, node interpreter) *Host {
	return &Host{
		dir: "/state/host-1", system: []string{"/usr/bin", "/usr/lib", "/usr/share"}, python: python, node: node,
		runsc: &runsc.Runsc{Path: "/bin/runsc"},
	}
}

// TestSpec holds all that a sandbox is made of to a golden file: a change of it is a decision.
func TestSpec(t *testing.T) {
	usual, outside := interpreter{"/usr/bin/python3.11", "/usr/bin/python3.11"}, interpreter{"/home/me/node/bin/node", guestBin + "/node"}
	limits := DefaultLimits()
	limits.Memory, limits.Workspace, limits.Processes, limits.OpenFiles = 300<<20, 100<<20, 33, 44
	limits.FileSize, limits.Inodes = 50<<20, 1234
	for _, test := range []struct {
		name string
		host *Host
		job  Job
	}{
		{"python", specHost(usual, interpreter{"/usr/bin/node", "/usr/bin/node"}), Job{ID: "e-1", Interpreter: Python, Limits: DefaultLimits()}},
		{"node", specHost(usual, outside), Job{ID: "e-2", Interpreter: Node, Limits: limits}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.job.Code = "never in the spec"
			got, err := test.host.spec(test.job, "/state/host-1/"+test.job.ID+"/bridge")
			must(t, err)
			golden.Check(t, filepath.Join("testdata", "spec", test.name+".json"), string(got)+"\n")
			checkSpec(t, got)
		})
	}
}

// checkSpec says what must hold whatever the golden files are updated to.
func checkSpec(t *testing.T, data []byte) {
	t.Helper()
	var spec specs.Spec
	must(t, json.Unmarshal(data, &spec))
	if !spec.Root.Readonly || !spec.Process.NoNewPrivileges || spec.Process.User.UID != nobody || len(spec.Process.Capabilities.Bounding) > 0 {
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
