// The test installs the packages of dist/ as people do, and runs a program of each as an ordinary user in gVisor.
// Without SALLYPORT_DIST it is skipped.
package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ordinary is the user who runs the programs: no name, no home, no groups.
const ordinary = "64321"

// dist returns the one file of dist/ that matches the pattern.
func dist(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("SALLYPORT_DIST")
	if dir == "" {
		t.Skip("SALLYPORT_DIST is not set: run make dist dist-check")
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s in %s: found %v, %v; run make dist first", pattern, dir, found, err)
	}
	return found[0]
}

// needRoot skips a test that changes users or roots.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("root is needed to install and to become an ordinary user")
	}
}

// home returns a folder of the ordinary user. Its parents can be entered by all.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallyport-dist-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work", "install"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "chown", ordinary, filepath.Join(dir, "work"))
	return dir
}

// command runs a command and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The first programs of a user, in both languages. No server is needed for them.
const (
	settings   = "upstreams: {}\n"
	python     = "import sys, platform\nprint('python says', sum(range(10)))\nprint(open('/proc/version').read())\n"
	typescript = "const n: number = [1, 2, 3].reduce((a, b) => a + b, 0);\nconsole.log('typescript says', n);\n"
)

// asUser runs sallyport as an ordinary user without capabilities, below root if that is not empty.
func asUser(t *testing.T, root, work, sallyport string, args ...string) string {
	t.Helper()
	words := []string{"setpriv", "--reuid=" + ordinary, "--regid=" + ordinary, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}
	words = append(words, "env", "-i", "HOME="+work, "PATH=/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR="+work, "SALLYPORT_CONFIG="+work+"/upstreams.yaml", sallyport)
	words = inRoot(root, append(words, args...)...)
	return command(t, words[0], words[1:]...)
}

// firstPrograms runs a program in each language, and checks that a sandbox ran it.
func firstPrograms(t *testing.T, root, work, sallyport string) {
	t.Helper()
	for name, text := range map[string]string{"upstreams.yaml": settings, "first.py": python, "first.ts": typescript} {
		if err := os.WriteFile(filepath.Join(root, work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	version := asUser(t, root, work, sallyport, "--version")
	if !strings.HasPrefix(version, "sallyport ") || strings.Contains(version, "dev") {
		t.Errorf("--version prints %q", version)
	}
	out := asUser(t, root, work, sallyport, "exec", work+"/first.py")
	if !strings.Contains(out, "python says 45") || !strings.Contains(strings.ToLower(out), "gvisor") && !strings.Contains(out, "4.4.0") {
		t.Errorf("the Python program prints %q", out)
	}
	if out := asUser(t, root, work, sallyport, "exec", work+"/first.ts"); !strings.Contains(out, "typescript says 6") {
		t.Errorf("the TypeScript program prints %q", out)
	}
	t.Logf("%s ran Python and TypeScript in gVisor as user %s", strings.TrimSpace(version), ordinary)
}

// checkVersions checks what the build stamped.
func checkVersions(t *testing.T, text string) {
	t.Helper()
	var v struct {
		Version, Commit, Date, Runsc string
		Pin                          string `json:"runsc_pin"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version == "" || len(v.Commit) != 40 || len(v.Date) != len("2006-01-02") || !strings.HasSuffix(v.Runsc, v.Pin) {
		t.Errorf("version --json: %s", text)
	}
}

func TestArchive(t *testing.T) {
	needRoot(t)
	archive, dir := dist(t, "sallyport-*-linux-"+runtime.GOARCH+".tar.gz"), home(t)
	command(t, "tar", "-xzf", archive, "-C", dir+"/install", "--strip-components=1")
	firstPrograms(t, "", dir+"/work", dir+"/install/bin/sallyport")
	checkVersions(t, asUser(t, "", dir+"/work", dir+"/install/bin/sallyport", "version", "--json"))
}

// npm installs both packages without the registry, and runs no script.
func TestNpm(t *testing.T) {
	needRoot(t)
	system, arch := npmPlatform(target{runtime.GOOS, runtime.GOARCH})
	dir := home(t)
	command(t, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", dir+"/cache", "--prefix", dir+"/install",
		dist(t, "npm-sallyport-[0-9]*.tgz"), dist(t, "npm-sallyport-"+system+"-"+arch+"-*.tgz"))
	firstPrograms(t, "", dir+"/work", dir+"/install/node_modules/.bin/sallyport")
	if out := command(t, "npx", "--offline", "--no-install", "--prefix", dir+"/install", "sallyport", "--version"); !strings.HasPrefix(out, "sallyport ") {
		t.Errorf("npx sallyport --version prints %q", out)
	}
}

// The package is installed by dpkg in a new Debian, which debootstrap makes.
func TestDeb(t *testing.T) {
	needRoot(t)
	deb, dir := dist(t, "sallyport_*_"+runtime.GOARCH+".deb"), home(t)
	root := dir + "/install"
	debian(t, root)
	command(t, "cp", deb, root+"/tmp/sallyport.deb")
	command(t, "chroot", root, "dpkg", "--install", "/tmp/sallyport.deb")
	for _, path := range []string{"/usr/lib/systemd/system/sallyport.service", "/etc/sallyport/upstreams.yaml", "/usr/share/man/man1/sallyport-exec.1", "/usr/share/bash-completion/completions/sallyport"} {
		if _, err := os.Stat(root + path); err != nil {
			t.Error(err)
		}
	}
	if user := command(t, "chroot", root, "getent", "passwd", "sallyport"); !strings.Contains(user, "nologin") {
		t.Errorf("the user of the service is %q", user)
	}
	command(t, "install", "-d", "-o", ordinary, root+"/work")
	firstPrograms(t, root, "/work", "/usr/bin/sallyport")
	command(t, "chroot", root, "dpkg", "--remove", "sallyport")
	if _, err := os.Lstat(root + "/usr/bin/sallyport"); err == nil {
		t.Error("dpkg --remove leaves /usr/bin/sallyport")
	}
}

// debian makes a root with the interpreters, from the mirror that this machine's apt uses. debootstrap runs once: what it
// makes is kept in .cache.
func debian(t *testing.T, root string) {
	t.Helper()
	release := command(t, "sh", "-c", ". /etc/os-release && printf %s $VERSION_CODENAME")
	kept := filepath.Join("..", "..", ".cache", "debian-"+release+".tar")
	if _, err := os.Stat(kept); err == nil {
		command(t, "tar", "-xpf", kept, "-C", root)
		return
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Fatal("debootstrap is missing: apt-get install debootstrap")
	}
	command(t, "debootstrap", "--variant=minbase", "--include=python3,nodejs,ca-certificates", release, root)
	command(t, "tar", "-cpf", kept+".new", "-C", root, ".")
	if err := os.Rename(kept+".new", kept); err != nil {
		t.Fatal(err)
	}
}

// enter is a script that makes a folder the root of a command, in a mount namespace that ends with it. A chroot does
// not do: the kernel refuses user namespaces to processes in one.
const enter = `set -e
cd "$1"
shift
mount --rbind . .
cd "$PWD"
mount -t proc proc proc
mount --rbind /dev dev
mkdir -p old
pivot_root . old
umount -l /old
exec "$@"`

// inRoot returns the words that run a command in a root, or in this one if it is empty.
func inRoot(root string, words ...string) []string {
	if root == "" {
		return words
	}
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", enter, "enter", root}, words...)
}
