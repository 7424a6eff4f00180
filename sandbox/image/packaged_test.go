//go:build linux

package image_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"sallyport/internal/testutil/tlstest"
	"sallyport/sandbox/image"
)

// TestPackagedImage pulls the OCI image of `make dist` from a registry, as any image, and runs its entry point in its root
// as its user.
func TestPackagedImage(t *testing.T) {
	dir := os.Getenv("SALLYPORT_DIST")
	if dir == "" || os.Getuid() != 0 {
		t.Skip("`make dist dist-check` runs this, as root")
	}
	found, err := filepath.Glob(filepath.Join(dir, "sallyport-*-oci.tar"))
	if err != nil || len(found) != 1 {
		t.Fatalf("images in %s: %q, %v", dir, found, err)
	}
	reference, config := pushLayout(t, found[0])
	root, err := image.Pull(t.Context(), reference, image.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{"sallyport"}) || config.Config.User != "990" || !slices.Contains(root.Path, "/usr/local/bin") {
		t.Errorf("the image runs %q as %q in %q", config.Config.Entrypoint, config.Config.User, root.Path)
	}
	out := runIn(t, root.Dir, config.Config.Env, "version", "--json")
	var v struct{ Version, Commit string }
	if err := json.Unmarshal(out, &v); err != nil || v.Version == "" {
		t.Errorf("version --json in the image prints %s, %v", out, err)
	}
	if info, err := os.Stat(filepath.Join(root.Dir, "usr/local/bin/runsc")); err != nil || info.Mode().Perm()&0o111 == 0 || info.Size() < 50<<20 {
		t.Errorf("runsc in the image: %v, %v", info, err)
	}
}

// pushLayout puts the images of an OCI layout into a registry, and returns the pinned reference of the index and the
// configuration of the image for this machine.
func pushLayout(t *testing.T, archive string) (string, *v1.ConfigFile) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	tlstest.StartHTTP1(t, server)
	t.Cleanup(server.Close)
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.NewDigest(strings.TrimPrefix(server.URL, "https://") + "/sallyport@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reference, index); err != nil {
		t.Fatal(err)
	}
	one, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return reference.String(), config
}

// runIn runs sallyport in a root, as the image's user.
func runIn(t *testing.T, root string, env []string, args ...string) []byte {
	t.Helper()
	for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user enters it
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/usr/local/bin/sallyport", args...)
	cmd.Dir, cmd.Env = "/", env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 990, Gid: 990}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run sallyport in the image: %v\n%s", err, out)
	}
	return out
}
