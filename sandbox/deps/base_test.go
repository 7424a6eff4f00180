package deps_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// outside is a folder where sandboxes have none of their own, as they have /tmp.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-base-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// system is the machine's Python and its version.
func system(t *testing.T) (path, version string) {
	t.Helper()
	path, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Skip("the distribution has no Python in /usr/bin")
	}
	return path, strings.TrimPrefix(filepath.Base(path), "python")
}

// prefix is a Python with a folder of its own, as uv's and conda's are: a copy of the machine's.
func prefix(t *testing.T, dir string) string {
	t.Helper()
	python, version := system(t)
	for _, args := range [][]string{
		{"mkdir", "-p", dir + "/bin", dir + "/lib"}, {"cp", python, dir + "/bin/python" + version},
		{"cp", "-rL", "/usr/lib/python" + version, dir + "/lib/"}, {"mkdir", "-p", dir + "/lib/python" + version + "/site-packages"},
		{"ln", "-s", "python" + version, dir + "/bin/python"},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil && args[0] != "cp" {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	return dir
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestBases makes one of each kind, and has a program import from it in a real sandbox.
func TestBases(t *testing.T) {
	python, version := system(t)
	testutil.Runsc(t)
	dir := outside(t)
	venv, uv, own, conda := filepath.Join(dir, "venv"), filepath.Join(dir, "uv"), filepath.Join(dir, "cpython"), filepath.Join(dir, "conda")
	copies, temporary := filepath.Join(dir, "copies"), filepath.Join(testutil.ShortDir(t), "venv")
	for _, args := range [][]string{{venv}, {"--copies", copies}, {temporary}} {
		if out, err := exec.CommandContext(t.Context(), python, append([]string{"-m", "venv", "--without-pip"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if info, err := os.Lstat(filepath.Join(copies, "bin", "python")); err != nil || !info.Mode().IsRegular() {
		t.Fatalf("the copy: %v, %v", info, err)
	}
	prefix(t, own)
	prefix(t, conda)
	put(t, filepath.Join(conda, "conda-meta", "history"), "")
	put(t, filepath.Join(uv, "pyvenv.cfg"), "home = "+own+"/bin\nimplementation = CPython\nuv = 0.4.20\nversion_info = "+version+".2\ninclude-system-site-packages = false\n")
	put(t, filepath.Join(uv, "bin", "activate"), "")
	if err := os.Symlink(filepath.Join(own, "bin", "python"+version), filepath.Join(uv, "bin", "python")); err != nil {
		t.Fatal(err)
	}
	host := newHost(t)
	for kind, base := range map[string]string{"venv": venv, "venv with copies": copies, "venv below /tmp": temporary, "uv": uv, "conda": conda} {
		site := filepath.Join(base, "lib", "python"+version, "site-packages")
		put(t, filepath.Join(site, "mine.py"), fmt.Sprintf("word = %q\n", kind))
		put(t, filepath.Join(site, "mine-1.0.dist-info", "METADATA"), "Name: mine\nVersion: 1.0\n")
		found, err := deps.FindBase(base)
		if err != nil || found.Kind != strings.Fields(kind)[0] || found.Version != version {
			t.Fatalf("%s: %+v, %v", kind, found, err)
		}
		var env sandbox.Environment
		found.AddTo(&env)
		if got := evaluate(t, host, env, "import mine, json, sys; print(mine.word, '%d.%d' % sys.version_info[:2])"); got != kind+" "+version {
			t.Errorf("%s: the program says %q", kind, got)
		}
		if all, err := deps.List(sandbox.Python, found.Sites...); err != nil || len(all) != 1 || all[0].Name != "mine" {
			t.Errorf("%s: %+v, %v", kind, all, err)
		}
		put(t, filepath.Join(site, "mine.py"), "word = 'another'\n")
		if changed, err := deps.FindBase(base); err != nil || changed.Digest == found.Digest {
			t.Errorf("%s: a change does not change the digest: %v", kind, err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(venv, "lib", "python"+version, "site-packages", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := deps.FindBase(venv); !errors.Is(err, deps.ErrBase) || !strings.Contains(err.Error(), "link-mode") {
		t.Errorf("with a link to elsewhere: %v", err)
	}
}

// TestBaseInstall installs on top of a base that has no pip of its own.
func TestBaseInstall(t *testing.T) {
	python, _ := system(t)
	venv := filepath.Join(outside(t), "venv")
	if out, err := exec.CommandContext(t.Context(), python, "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	installer, host, _ := newInstaller(t, deps.Options{})
	index := newIndex(t)
	index.offer("words", "2.1", nil, member{"words.py", "hello = 'hello'\n"})
	// An sdist that builds itself, without anything from the index.
	backend := `import os, shutil
def build_wheel(directory, settings=None, metadata=None):
    shutil.copy("made.whl", os.path.join(directory, "made-1.0-py3-none-any.whl"))
    return "made-1.0-py3-none-any.whl"
`
	index.add("made", "made-1.0.tar.gz", tgzOf(
		member{"made-1.0/pyproject.toml", "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n"},
		member{"made-1.0/backend.py", backend}, member{"made-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: made\nVersion: 1.0\n"},
		member{"made-1.0/made.whl", string(wheelOf("made", "1.0", nil, member{"made.py", "how = 'built'\n"}))}), "")
	request := deps.Request{Interpreter: sandbox.Python, Packages: []string{"words", "made"}, Index: index.url(), Base: venv, Source: true}
	layer, err := installer.Install(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	base, err := deps.FindBase(venv)
	if err != nil {
		t.Fatal(err)
	}
	var env sandbox.Environment
	base.AddTo(&env)
	layer.AddTo(&env)
	if got := evaluate(t, host, env, "import words, made; print(words.hello, made.how)"); got != "hello built" {
		t.Errorf("the program says %q", got)
	}
}

func TestBaseRefused(t *testing.T) {
	python, version := system(t)
	dir := outside(t)
	put(t, filepath.Join(dir, "nothing", "x"), "")
	put(t, filepath.Join(dir, "script", "bin", "python"), "#!/bin/sh\n")
	put(t, filepath.Join(dir, "plain", "bin", "x"), "")
	put(t, filepath.Join(dir, "old", "pyvenv.cfg"), "home = /usr/bin\nversion = 2.7.1\n")
	put(t, filepath.Join(dir, "old", "bin", "x"), "")
	put(t, filepath.Join(dir, "temporary", "pyvenv.cfg"), "")
	for _, name := range []string{"plain", "old"} {
		if err := os.Symlink(python, filepath.Join(dir, name, "bin", "python")); err != nil {
			t.Fatal(err)
		}
	}
	temporary := prefix(t, filepath.Join(testutil.ShortDir(t), "conda"))
	put(t, filepath.Join(temporary, "conda-meta", "history"), "")
	put(t, filepath.Join(dir, "lost", "pyvenv.cfg"), "home = /nowhere\nversion = "+version+".1\n")
	put(t, filepath.Join(dir, "lost", "lib", "python"+version, "site-packages", "x.py"), "")
	copied, err := os.ReadFile(python)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "lost", "bin", "python"), string(copied))
	for base, want := range map[string]string{
		filepath.Join(dir, "gone"): "no such file", filepath.Join(dir, "nothing"): "no bin/python", filepath.Join(dir, "script"): "not a Linux program",
		filepath.Join(dir, "plain"): "neither pyvenv.cfg nor conda-meta", filepath.Join(dir, "old"): "site-packages", temporary: "sandboxes have another folder there",
		filepath.Join(dir, "lost"): "a copy of /nowhere/python",
	} {
		if _, err := deps.FindBase(base); !errors.Is(err, deps.ErrBase) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", base, err, want)
		}
	}
}
