// The test installs the packages of dist/ as people do, and takes a new user's first steps with each as an ordinary user:
// settings, a first program in gVisor, the entry of a client. Without SALLYPORT_DIST it is skipped.
package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
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

// needRoot skips a test that changes the root.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("root is needed for a new root file system")
	}
}

// released reports whether the packages are of a release, and not of the programs of make build.
func released() bool { return os.Getenv("SALLYPORT_DIST_FAST") == "" }

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
	if os.Getuid() == 0 {
		command(t, "chown", ordinary, filepath.Join(dir, "work"))
	}
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

// The first programs of a user, in both languages.
const (
	python     = "from servers.shop import list_orders\nprint('python says', len(list_orders(month='march')['orders']))\nprint(open('/proc/version').read())\n"
	typescript = "const n: number = [1, 2, 3].reduce((a, b) => a + b, 0);\nconsole.log('typescript says', n);\n"
)

// asUser runs sallyport as an ordinary user without capabilities, below root if that is not empty. A test that is not run
// by root is an ordinary user already.
func asUser(t *testing.T, root, work, sallyport string, args ...string) string {
	t.Helper()
	words := []string{"setpriv", "--reuid=" + ordinary, "--regid=" + ordinary, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}
	if os.Getuid() != 0 {
		words = nil
	}
	words = append(words, "env", "-i", "HOME="+work, "PATH=/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR="+work, sallyport)
	words = inRoot(root, append(words, args...)...)
	return command(t, words[0], words[1:]...)
}

// firstSteps are those of a new user: one command writes settings with a sample server and the entry of a client, the
// next one runs a program that calls the server in a sandbox. Then the other language.
func firstSteps(t *testing.T, root, work, sallyport string) {
	t.Helper()
	for name, text := range map[string]string{"first.py": python, "first.ts": typescript} {
		if err := os.WriteFile(filepath.Join(root, work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	version := asUser(t, root, work, sallyport, "--version")
	if !strings.HasPrefix(version, "sallyport ") || released() && strings.Contains(version, "dev") {
		t.Errorf("--version prints %q", version)
	}
	start := time.Now()
	said := asUser(t, root, work, sallyport, "init", "--server", "shop", "--install", "cursor")
	out := asUser(t, root, work, sallyport, "exec", work+"/first.py")
	if !strings.Contains(out, "python says 2") || !strings.Contains(strings.ToLower(out), "gvisor") && !strings.Contains(out, "4.4.0") {
		t.Errorf("the Python program prints %q", out)
	}
	took := time.Since(start)
	entry, err := os.ReadFile(filepath.Join(root, work, ".cursor", "mcp.json"))
	if err != nil || !strings.Contains(string(entry), `"serve"`) {
		t.Errorf("the entry of the client: %v\n%s\ninit says:\n%s", err, entry, said)
	}
	if out := asUser(t, root, work, sallyport, "exec", work+"/first.ts"); !strings.Contains(out, "typescript says 6") {
		t.Errorf("the TypeScript program prints %q", out)
	}
	t.Logf("%s: settings, the entry of a client and a first program with 2 commands in %.1f s, as user %s", strings.TrimSpace(version), took.Seconds(), ordinary)
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
	if !released() {
		return
	}
	if v.Version == "" || len(v.Commit) != 40 || len(v.Date) != len("2006-01-02") || !strings.HasSuffix(v.Runsc, v.Pin) {
		t.Errorf("version --json: %s", text)
	}
}

func TestArchive(t *testing.T) {
	archive, dir := dist(t, "sallyport-*-linux-"+runtime.GOARCH+".tar.gz"), home(t)
	command(t, "tar", "-xzf", archive, "-C", dir+"/install", "--strip-components=1")
	checkSize(t, dir+"/install/bin/sallyport")
	firstSteps(t, "", dir+"/work", dir+"/install/bin/sallyport")
	checkVersions(t, asUser(t, "", dir+"/work", dir+"/install/bin/sallyport", "version", "--json"))
}

// most is the size of sallyport on disk that a release for Linux must not exceed.
const most = 60_000_000

func checkSize(t *testing.T, program string) {
	t.Helper()
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %.1f MB", filepath.Base(program), float64(info.Size())/1e6)
	if released() && info.Size() > most {
		t.Errorf("%s has %d bytes, more than %d: see Size in docs/how-to/install.md", program, info.Size(), most)
	}
}

// npm installs both packages without the registry, and runs no script.
func TestNpm(t *testing.T) {
	system, arch := npmPlatform(target{runtime.GOOS, runtime.GOARCH})
	dir := home(t)
	command(t, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", dir+"/cache", "--prefix", dir+"/install",
		dist(t, "npm-sallyport-[0-9]*.tgz"), dist(t, "npm-sallyport-"+system+"-"+arch+"-*.tgz"))
	firstSteps(t, "", dir+"/work", dir+"/install/node_modules/.bin/sallyport")
	if out := command(t, "npx", "--offline", "--no-install", "--prefix", dir+"/install", "sallyport", "--version"); !strings.HasPrefix(out, "sallyport ") {
		t.Errorf("npx sallyport --version prints %q", out)
	}
}

// TestDebContents unpacks the package and runs what is in it; TestDeb installs it.
func TestDebContents(t *testing.T) {
	deb, dir := dist(t, "sallyport_*_"+runtime.GOARCH+".deb"), home(t)
	root := dir + "/install"
	command(t, "dpkg-deb", "--extract", deb, root)
	checkInstalled(t, root)
	if control := command(t, "dpkg-deb", "--field", deb, "Package", "Depends", "Architecture"); !strings.Contains(control, "Package: sallyport\nDepends: passwd\nArchitecture: "+runtime.GOARCH) {
		t.Errorf("the description is %q", control)
	}
	firstSteps(t, "", dir+"/work", root+"/usr/lib/sallyport/sallyport")
}

// checkInstalled checks the files of a package of Linux.
func checkInstalled(t *testing.T, root string) {
	t.Helper()
	for _, path := range []string{"/usr/lib/sallyport/runsc", "/usr/lib/systemd/system/sallyport.service", "/etc/sallyport/upstreams.yaml", "/usr/share/man/man1/sallyport-exec.1", "/usr/share/bash-completion/completions/sallyport"} {
		if _, err := os.Stat(root + path); err != nil {
			t.Error(err)
		}
	}
	if target, err := os.Readlink(root + "/usr/bin/sallyport"); err != nil || target != "/usr/lib/sallyport/sallyport" {
		t.Errorf("/usr/bin/sallyport is a link to %q, %v", target, err)
	}
}

// TestDeb and TestRpm install the package in a new Debian, which debootstrap makes.
func TestDeb(t *testing.T) {
	testPackage(t, "sallyport_*_"+runtime.GOARCH+".deb", []string{"dpkg", "--install"}, []string{"dpkg", "--remove"})
}

// The dependency is not in the database of rpm: Debian's passwd has what shadow-utils has.
func TestRpm(t *testing.T) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	testPackage(t, "sallyport-*."+arch+".rpm", []string{"rpm", "--install", "--nodeps"}, []string{"rpm", "--erase"})
}

// testPackage installs a package in a new Debian, takes the first steps, and removes it.
func testPackage(t *testing.T, pattern string, install, remove []string) {
	t.Helper()
	needRoot(t)
	file, dir := dist(t, pattern), home(t)
	root := dir + "/install"
	debian(t, root)
	command(t, "cp", file, root+"/tmp/package")
	chroot := func(words ...string) string { return command(t, "chroot", append([]string{root}, words...)...) }
	chroot(append(install, "/tmp/package")...)
	checkInstalled(t, root)
	if user := chroot("getent", "passwd", "sallyport"); !strings.Contains(user, "nologin") {
		t.Errorf("the user of the service is %q", user)
	}
	command(t, "install", "-d", "-o", ordinary, root+"/work")
	firstSteps(t, root, "/work", "/usr/bin/sallyport")
	chroot(append(remove, "sallyport")...)
	if _, err := os.Lstat(root + "/usr/bin/sallyport"); err == nil {
		t.Errorf("%s leaves /usr/bin/sallyport", strings.Join(remove, " "))
	}
}

// TestFormula has Ruby read the formula, and compares its checksums with the archives.
func TestFormula(t *testing.T) {
	needRoot(t)
	formula, dir := dist(t, "sallyport.rb"), home(t)
	root := dir + "/install"
	debian(t, root)
	command(t, "cp", formula, root+"/tmp/sallyport.rb")
	if out := command(t, "chroot", root, "ruby", "-wc", "/tmp/sallyport.rb"); !strings.Contains(out, "Syntax OK") {
		t.Errorf("ruby -wc prints %q", out)
	}
	text := command(t, "cat", formula)
	sums := command(t, "cat", dist(t, "SHA256SUMS"))
	found := regexp.MustCompile(`/(sallyport-[^/"]*\.tar\.gz)"\s+sha256 "([0-9a-f]{64})"`).FindAllStringSubmatch(text, -1)
	for _, archive := range found {
		if !strings.Contains(sums, archive[2]+"  "+archive[1]+"\n") {
			t.Errorf("the checksum of %s is another one", archive[1])
		}
	}
	if archives, _ := filepath.Glob(filepath.Join(filepath.Dir(formula), "sallyport-*.tar.gz")); len(found) != len(archives) || len(found) == 0 {
		t.Errorf("the formula has %d archives of %d", len(found), len(archives))
	}
}

// TestOtherSystems checks the archives that cannot run here: the kind of their programs, and the archive for Linux that
// sallyport vm up installs.
func TestOtherSystems(t *testing.T) {
	for _, target := range []struct{ pattern, program, kind, linux string }{
		{"sallyport-*-linux-arm64.tar.gz", "bin/sallyport", "\x7fELF\x02\x01\x01", ""},
		{"sallyport-*-linux-arm64.tar.gz", "bin/runsc", "\x7fELF\x02\x01\x01", ""},
		{"sallyport-*-darwin-arm64.tar.gz", "bin/sallyport", "\xcf\xfa\xed\xfe\x0c\x00\x00\x01", "linux-arm64.tar.gz"},
		{"sallyport-*-darwin-amd64.tar.gz", "bin/sallyport", "\xcf\xfa\xed\xfe\x07\x00\x00\x01", "linux-amd64.tar.gz"},
		{"sallyport-*-windows-amd64.zip", "bin/sallyport.exe", "MZ", "linux-amd64.tar.gz"},
	} {
		archive, dir := dist(t, target.pattern), home(t)
		folder := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(archive), ".tar.gz"), ".zip")
		unpack(t, archive, dir+"/install")
		data, err := os.ReadFile(filepath.Join(dir, "install", folder, target.program))
		if err != nil || !strings.HasPrefix(string(data), target.kind) {
			t.Errorf("%s: %s begins with %q, %v", archive, target.program, data[:min(8, len(data))], err)
		}
		if strings.Contains(target.pattern, "linux") && target.program == "bin/sallyport" {
			checkSize(t, filepath.Join(dir, "install", folder, target.program))
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "install", folder, "share", "sallyport", "sallyport-*-"+target.linux)); target.linux != "" && len(found) != 1 {
			t.Errorf("%s has the archives %q for Linux", archive, found)
		}
	}
}

func unpack(t *testing.T, archive, to string) {
	t.Helper()
	if strings.HasSuffix(archive, ".zip") {
		command(t, "python3", "-m", "zipfile", "-e", archive, to)
		return
	}
	command(t, "tar", "-xzf", archive, "-C", to)
}

// debian makes a root with the interpreters, from the mirror that this machine's apt uses. debootstrap runs once: what it
// makes is kept in .cache.
func debian(t *testing.T, root string) {
	t.Helper()
	release := command(t, "sh", "-c", ". /etc/os-release && printf %s $VERSION_CODENAME")
	kept := filepath.Join("..", "..", ".cache", "debian-"+release+"-2.tar")
	if _, err := os.Stat(kept); err == nil {
		command(t, "tar", "-xpf", kept, "-C", root)
		return
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Fatal("debootstrap is missing: apt-get install debootstrap")
	}
	command(t, "debootstrap", "--variant=minbase", "--include=python3,nodejs,ca-certificates,rpm,ruby", release, root)
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
