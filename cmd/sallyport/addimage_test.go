//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil"
	"sallyport/sandbox/image/imagetest"
)

// TestAddImage adds an OCI image by its tag, and calls its server. The settings have its digest.
func TestAddImage(t *testing.T) {
	t.Parallel()
	runsc, images, dir := testutil.Runsc(t), imagetest.NewRegistry(t), testutil.ShortDir(t)
	servers, _ := registrytest.Weather(t)
	pinned := images.Push(t, "1.0", imagetest.Config{Entrypoint: []string{"/server"}, Cmd: []string{"stdio"}}, imagetest.Server(t))
	_, digest, _ := strings.Cut(pinned, "@")
	settings := filepath.Join(dir, "upstreams.yaml")
	writeText(t, settings, "registry: "+servers.URL+"\nupstreams: {}\nsandbox: {runsc: "+runsc+", pool: {max: 0}, typecheck: false}\n")
	run := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sallyport", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR="+dir, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere/bus")
		if out, err := cmd.CombinedOutput(); err != nil && !strings.HasPrefix(want, "error") || !strings.Contains(string(out), strings.TrimPrefix(want, "error: ")) {
			t.Fatalf("%v: %v, want %s in\n%s", args, err, want, out)
		}
	}
	image := images.Repository + ":1.0"
	run("  runs image    "+image+"@"+digest+"\n  isolated      yes\n  hosts         none", "add", "image:"+image, "--name", "clock", "--dry-run")
	run("added clock to upstreams.yaml: 4 tools (about, dial, read, write)", "add", "docker:"+image, "--name", "clock", "--yes")
	run("clock is in upstreams.yaml already", "add", "image:"+image, "--yes")
	run("[/server stdio] / 0:0", "call", "clock.about", `{"text": "x"}`)
	run(images.Repository+"@"+digest[:19], "environments", "list")
	run("image: "+`"`+image+"@"+digest+`"`, "upstreams", "profile", "clock")
	run("error: correct the name or the tag", "add", "image:"+images.Repository+":none", "--yes")
	run("error: an image runs in a sandbox only", "add", "image:"+image, "--yes", "--no-isolate")
	if text, err := os.ReadFile(settings); err != nil || !strings.Contains(string(text), "    isolate:\n      image: "+image+"@"+digest+"\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
