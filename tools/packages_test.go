package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackages makes the archive, the deb and the npm packages of this machine from what make build and make runsc left,
// installs them in new folders, and takes the first steps of a new user with each. `make dist-check` does it with the
// packages of a release, in new root file systems. The patches of libraries in a release are tried here, too.
func TestPackages(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs programs in sandboxes")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(root, ".cache", "bin")
	for _, name := range []string{"sallyport", "runsc"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err == nil {
			continue
		} else if os.Getenv("SALLYPORT_REQUIRE") == "" {
			t.Skip(err)
		}
		t.Fatalf("run make build runsc first: %s is missing", name)
	}
	out := t.TempDir()
	run(t, root, nil, "run", ".", "-root", root, "-out", out, "-programs", programs)
	run(t, root, []string{"SALLYPORT_DIST=" + out, "SALLYPORT_DIST_FAST=1"}, "test", "-count=1", "-vet=off", "-v", "-run", "^(TestArchive|TestNpm|TestDebContents|TestPatches|TestApply)$", ".")
}

// run runs a command of go in tools/dist, and logs what it prints.
func run(t *testing.T, root string, env []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"-C", filepath.Join(root, "tools", "dist")}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	t.Logf("go %q:\n%s", args, out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestModulePath gives a copy of the sources another module path, as is done once there is a home: all imports are found,
// the build stamps its facts in the new place, and nothing else that begins with the old name changes.
func TestModulePath(t *testing.T) {
	if testing.Short() {
		t.Skip("it copies the sources")
	}
	const path = "example.com/group/sallyport"
	dir := t.TempDir()
	shell(t, "..", "git ls-files -z | xargs -0 cp --parents -t "+dir)
	shell(t, dir, "sh tools/dist/module.sh "+path+" https://example.com/sallyport")
	for file, want := range map[string]string{
		"go.mod":                           "module " + path + "\n",
		"internal/build/build.go":          "Home = \"https://example.com/sallyport\"",
		"cmd/sallyport/root.go":            "\"" + path + "/cmd/sallyport/internal/cli\"",
		"cmd/sallyport/examplerun_test.go": "ex \"" + path + "/examples\"",
		"tools/golden.sh":                  "\"" + path + "/internal/testutil/refpage\"",
		"codegen/client/client_test.go":    "{\"sallyport/client.py\"",
		"tools/dist/compile.go":            "pkg := r.module + \"/internal/build.\"",
		"tools/dist/go.mod":                "module sallyport/tools/dist\n",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q (%v)", file, want, err)
		}
	}
}

// shell runs a script in a folder.
func shell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
