//go:build linux

package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
	"sallyport/sandbox/image"
	"sallyport/sandbox/image/imagetest"
	"sallyport/sandbox/sandboxtest"
)

// tools is what the suite's programs use beside Python, and the files of /etc that it looks for.
func tools(t *testing.T) []byte {
	t.Helper()
	files := []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"}
	programs := []string{"/bin/sh", "/bin/mount", "/bin/cat", "/usr/bin/id", "/bin/uname", "/bin/sleep"}
	return imagetest.Layer(t, slices.Concat(files, programs, imagetest.Libraries(t, programs...))...)
}

// inside runs programs in an environment.
type inside struct {
	*sandbox.Host
	environment string
}

func (i inside) Run(ctx context.Context, job sandbox.Job, caller bridge.Caller) (sandbox.Outcome, error) {
	job.Environment = i.environment
	return i.Host.Run(ctx, job, caller)
}

// TestImageEnvironment runs programs on an image's root file system, in sandboxes that were started from
// nothing and in ones that were restored: what is masked there stays so, and all else is as everywhere.
func TestImageEnvironment(t *testing.T) {
	dir := testutil.ShortDir(t)
	reference := imagetest.Push(t, imagetest.Python(t), tools(t), imagetest.Texts(t, map[string]string{"/etc/gitconfig": ""}))
	root, err := image.Pull(t.Context(), reference, image.Options{Dir: filepath.Join(dir, "images"), MountPoints: sandbox.MountPoints(), Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	host, _ := openPooled(t, func(o *sandbox.Options) {
		o.Environments = map[string]sandbox.Environment{"data": {Root: root.Dir, Digest: root.Digest, Masked: []string{"/etc/passwd"}}}
	})
	const code = `import os, json
from servers.test import echo
def refused(path):
    try: open(path, "w")
    except OSError: return True
[echo("x"), "gvisor" in open("/proc/version").read(), os.path.exists("/usr/share/doc"), open("/etc/passwd").read(), [refused(p) for p in ("/x", "/usr/x", "/etc/passwd", "/servers/x")], os.getuid(), os.listdir("/workspace")]`
	const want = `["x",true,false,"",[true,true,true,true],65534,[]]`
	for round := range 4 {
		job := sandboxtest.Job(sandbox.Python, code)
		job.Environment = "data"
		if got := runValue(t, host, job); got != want {
			t.Errorf("round %d: %s", round, got)
		}
		awaitFull(t, host, sandbox.Python)
	}
	t.Run("core", func(t *testing.T) { sandboxtest.RunCore(t, inside{host, "data"}, sandbox.Python) })
	job := sandboxtest.Job(sandbox.Node, "export default 1")
	job.Environment = "data"
	if _, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err == nil {
		t.Error("a program for node ran on an image without node")
	}
	job = sandboxtest.Job(sandbox.Python, "1")
	job.Environment = "other"
	if _, err := host.Run(t.Context(), job, sandboxtest.Echo{}); err == nil {
		t.Error("a program ran in an environment that is not there")
	}
}
