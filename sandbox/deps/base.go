package deps

import (
	"bufio"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"sallyport/sandbox"
)

// Base is a Python environment on the host that sandboxes use unchanged,
// read-only.
type Base struct {
	// Dir is its folder, Kind is venv, uv or conda.
	Dir, Kind string
	// Python is the path of its interpreter, the same on the host and in sandboxes.
	Python string
	// Version is as in "3.11".
	Version string
	// Sites are the package folders on the host.
	Sites []string
	// Mounts are the folders that sandboxes mount, at the same paths as on the host, except those of a venv below /tmp and the like.
	Mounts []string
	// Digest changes when a file in one of Mounts does, by name, size and time.
	Digest string
}

// ErrBase means that a folder is not a Python environment that sandboxes can use.
var ErrBase = errors.New("cannot be a base")

// visiblePath matches paths of the host that every sandbox sees at the same path.
var visiblePath = regexp.MustCompile(`^/usr/(bin|lib|lib32|lib64|libx32|share)(/|$)`)

// reservedPath matches paths that a base must not mount: they belong to the sandbox.
var reservedPath = regexp.MustCompile(`^/(proc|sys|dev|etc|tmp|run|workspace|servers|node_modules|opt/sallyport|opt/packages|opt/interpreter|bin|lib|lib32|lib64|libx32|usr/(bin|lib|lib32|lib64|libx32|share))(/|$)`)

var minorVersion = regexp.MustCompile(`^python(3\.[0-9]{1,2})$`)

// Kind returns the kind of a base, by its settings: conda, venv-uv or venv, also for a folder that is none.
func Kind(dir string) string {
	settings, err := readSettings(filepath.Join(dir, "pyvenv.cfg"))
	switch {
	case err != nil && isFolder(filepath.Join(dir, "conda-meta")):
		return "conda"
	case settings["uv"] != "":
		return "venv-uv"
	}
	return "venv"
}

// FindBase examines a venv, a uv environment or a conda prefix. It reads names, sizes
// and links, and runs nothing. Errors wrap ErrBase and say what is wrong.
func FindBase(dir string) (Base, error) {
	b, err := findBase(dir)
	if err != nil {
		return Base{}, fmt.Errorf("%s %w: %w", dir, ErrBase, err)
	}
	return b, nil
}

func findBase(dir string) (Base, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Base{}, err
	}
	if real, err = filepath.Abs(real); err != nil {
		return Base{}, err
	}
	b := Base{Dir: real}
	if b.Python, err = filepath.EvalSymlinks(filepath.Join(real, "bin", "python")); err != nil {
		return Base{}, fmt.Errorf("it has no bin/python: %w", err)
	}
	if err := checkInterpreter(b.Python); err != nil {
		return Base{}, err
	}
	settings, err := readSettings(filepath.Join(real, "pyvenv.cfg"))
	switch {
	case err == nil:
		err = b.readVenv(settings)
	case isFolder(filepath.Join(real, "conda-meta")):
		err = b.readConda()
	default:
		err = errors.New("it has neither pyvenv.cfg nor conda-meta: name the folder of a venv, a uv environment or a conda prefix")
	}
	if err != nil {
		return Base{}, err
	}
	return b, b.scan()
}

// readVenv finds the packages of a venv and the interpreter that it was made with.
func (b *Base) readVenv(settings map[string]string) error {
	b.Kind = "venv"
	if settings["uv"] != "" {
		b.Kind = "uv"
	}
	version := settings["version"] // of venv; uv and virtualenv write version_info
	if version == "" {
		version = settings["version_info"]
	}
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return errors.New("its pyvenv.cfg says no version")
	}
	b.Version = parts[0] + "." + parts[1]
	if within(b.Python, []string{b.Dir}) { // venv --copies: the copy works only where its original is
		if err := b.findOriginal(settings); err != nil {
			return err
		}
	}
	site := filepath.Join(b.Dir, "lib", "python"+b.Version, "site-packages")
	if !isFolder(site) {
		return fmt.Errorf("it has no lib/python%s/site-packages", b.Version)
	}
	b.Sites, b.Mounts = []string{site}, []string{site}
	prefix := filepath.Dir(filepath.Dir(b.Python))
	library := filepath.Join(prefix, "lib", "python"+b.Version)
	if _, err := os.Stat(filepath.Join(library, "os.py")); err != nil {
		return fmt.Errorf("the Python that it was made with has no standard library at %s", library)
	}
	if !visiblePath.MatchString(b.Python) {
		b.Mounts = append(b.Mounts, filepath.Join(prefix, "bin"), filepath.Join(prefix, "lib"))
	}
	if strings.EqualFold(settings["include-system-site-packages"], "true") {
		for _, more := range []string{filepath.Join(library, "site-packages"), filepath.Join(prefix, "lib/python3/dist-packages")} {
			if isFolder(more) {
				b.Sites = append(b.Sites, more)
			}
		}
	}
	return nil
}

// findOriginal replaces a copied interpreter by the one that it was copied from.
func (b *Base) findOriginal(settings map[string]string) error {
	original := settings["executable"]
	if original == "" {
		original = filepath.Join(settings["home"], "python"+b.Version)
	}
	real, err := filepath.EvalSymlinks(original)
	if err != nil || !filepath.IsAbs(real) {
		return fmt.Errorf("its bin/python is a copy of %s, which is not there", original)
	}
	b.Python = real
	return checkInterpreter(real)
}

// readConda mounts the whole prefix: packages find libraries and data relative to it.
func (b *Base) readConda() error {
	b.Kind = "conda"
	match := minorVersion.FindStringSubmatch(filepath.Base(b.Python))
	if match == nil {
		return fmt.Errorf("its bin/python leads to %s, and not to a python3.x", filepath.Base(b.Python))
	}
	b.Version = match[1]
	library := filepath.Join(b.Dir, "lib", "python"+b.Version)
	if !within(b.Python, []string{b.Dir}) {
		return fmt.Errorf("its bin/python leads out of it, to %s", b.Python)
	}
	if _, err := os.Stat(filepath.Join(library, "os.py")); err != nil {
		return fmt.Errorf("it has no standard library at lib/python%s", b.Version)
	}
	b.Sites, b.Mounts = []string{filepath.Join(library, "site-packages")}, []string{b.Dir}
	return nil
}

// checkInterpreter checks that a file is an interpreter for this machine.
func checkInterpreter(path string) error {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("its bin/python, %s, is not a Linux program", path)
	}
	defer func() { _ = file.Close() }()
	if want, known := machines[runtime.GOARCH]; known && file.Machine != want {
		return fmt.Errorf("its bin/python is for %s, and this machine is %s", file.Machine, runtime.GOARCH)
	}
	return nil
}

// maxBaseEntries bounds the walk over a base.
const maxBaseEntries = 500_000

// scan walks all mounts to compute the digest and to reject links that would be broken in a sandbox.
func (b *Base) scan() error {
	if minor, err := strconv.Atoi(strings.TrimPrefix(b.Version, "3.")); err != nil || minor < 9 {
		return fmt.Errorf("it is Python %s, and programs need 3.9 or later", b.Version)
	}
	hash, entries := sha256.New(), 0
	for _, mount := range b.Mounts {
		if b.inside(mount) == mount && reservedPath.MatchString(mount) || mount == "/" || mount == "/usr" || mount == "/opt" {
			return fmt.Errorf("it needs %s, and sandboxes have another folder there", mount)
		}
		err := filepath.WalkDir(mount, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entries++; entries > maxBaseEntries {
				return fmt.Errorf("it has more than %d files", maxBaseEntries)
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(hash, "%q %v %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
			if err == nil && entry.Type() == fs.ModeSymlink {
				err = b.checkLink(path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	b.Digest = hex.EncodeToString(hash.Sum(nil)[:16])
	return nil
}

// checkLink checks that the target of a link among the packages is visible in sandboxes. A link
// that is already broken on the host is accepted.
func (b *Base) checkLink(path string) error {
	if !within(path, b.Sites) {
		return nil // of the interpreter's own folders: those of a distribution have some into /etc
	}
	target, err := filepath.EvalSymlinks(path)
	if written, _ := os.Readlink(path); err == nil && filepath.IsAbs(written) && within(written, b.Mounts) && b.inside(written) != written {
		return fmt.Errorf("%s is a link to %s, which sandboxes have elsewhere", path, written)
	}
	if err != nil || within(target, b.Mounts) || visiblePath.MatchString(target) {
		return nil //nolint:nilerr // see above
	}
	return fmt.Errorf("%s is a link to %s, which sandboxes do not see (uv: install with --link-mode=copy)", path, target)
}

// AddTo makes the base the Python of the environment.
func (b Base) AddTo(env *sandbox.Environment) {
	env.Python = b.Python
	for _, site := range b.Sites {
		env.PythonPath = append(env.PythonPath, b.inside(site))
	}
	for _, mount := range b.Mounts {
		addLayer(env, b.inside(mount), mount, b.Digest)
	}
}

// movedDir is where a sandbox has a venv if the path of the venv belongs to the sandbox, such as one below /tmp.
const movedDir = "/opt/base"

// inside returns the path in sandboxes of a path of the base. Packages of a venv can be anywhere; those of conda refer to
// their path.
func (b Base) inside(path string) string {
	if b.Kind != "conda" && within(path, []string{b.Dir}) && reservedPath.MatchString(path) {
		return movedDir + path
	}
	return path
}

func addLayer(env *sandbox.Environment, at, dir, digest string) {
	layers := map[string]string{at: dir}
	maps.Copy(layers, env.Layers) // do not modify the old map, which may be shared
	layers[at] = dir
	env.Layers = layers
	sum := sha256.Sum256([]byte(env.Digest + "\n" + at + "\n" + digest))
	env.Digest = hex.EncodeToString(sum[:16])
}

// readSettings reads pyvenv.cfg: lines of key = value.
func readSettings(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	settings, lines := map[string]string{}, bufio.NewScanner(file)
	for n := 0; lines.Scan() && n < 100; n++ {
		if key, value, found := strings.Cut(lines.Text(), "="); found {
			settings[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return settings, lines.Err()
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// within reports whether path is one of the folders or below it.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}
