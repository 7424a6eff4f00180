package deps_test

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/testutil/tlstest"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// npmRegistry answers as npm's does, for packages that are made here.
type npmRegistry struct {
	*httptest.Server
	mu       sync.Mutex
	packages map[string]map[string]any // manifests, by name
	tarballs map[string][]byte
	asked    []string
}

func newRegistry(t *testing.T) *npmRegistry {
	t.Helper()
	r := &npmRegistry{packages: map[string]map[string]any{}, tarballs: map[string][]byte{}}
	r.Server = tlstest.NewServer(t, r)
	return r
}

// offer adds version 1.0.0 of a package, with more fields of its package.json.
func (r *npmRegistry) offer(name string, more map[string]any, members ...member) {
	manifest := map[string]any{"name": name, "version": "1.0.0", "main": "index.js"}
	maps.Copy(manifest, more)
	data, _ := json.Marshal(manifest)
	tarball := tgzOf(append(members, member{"package/package.json", string(data)})...)
	sum := sha512.Sum512(tarball)
	dist := map[string]any{"tarball": r.URL + "/" + name + "/-/x.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	if override, ok := more["dist"]; ok {
		dist["integrity"] = override
	}
	manifest["dist"] = dist
	r.packages[name], r.tarballs[name] = manifest, tarball
}

func (r *npmRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, request.URL.Path)
	name, isTarball := strings.CutSuffix(strings.TrimPrefix(request.URL.Path, "/"), "/-/x.tgz")
	manifest, ok := r.packages[name]
	switch {
	case !ok:
		http.NotFound(w, request)
	case isTarball:
		_, _ = w.Write(r.tarballs[name])
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest}})
	}
}

// TestNPMTrouble has packages that try what none may.
func TestNPMTrouble(t *testing.T) {
	installer, host, _ := newInstaller(t, deps.Options{})
	registry := newRegistry(t)
	run := "node -e \"const u = new URL(process.env.HTTP_PROXY); require('http').get({host: u.hostname, port: u.port, path: '" + registry.URL + "/it-ran'})\""
	registry.offer("scripted", map[string]any{"scripts": map[string]string{"preinstall": run, "install": run, "postinstall": run}},
		member{"package/index.js", "module.exports = 'scripted'\n"})
	registry.offer("from-git", map[string]any{"dependencies": map[string]string{"x": "git+https://127.0.0.1:1/x.git"}})
	registry.offer("from-ssh", map[string]any{"dependencies": map[string]string{"x": "git+ssh://git@127.0.0.1:1/x.git"}})
	registry.offer("shadowing", map[string]any{"dependencies": map[string]string{"servers": "npm:scripted@1.0.0"}})
	registry.offer("aliased", map[string]any{"dependencies": map[string]string{"other-name": "npm:scripted@1.0.0"}}, member{"package/index.js", "module.exports = require('other-name')\n"})
	registry.offer("forged", map[string]any{"dist": "sha512-" + base64.StdEncoding.EncodeToString(make([]byte, 64))})
	registry.offer("traversal", nil, member{"package/../../../../x", "1"})
	registry.offer("elsewhere", map[string]any{"os": []string{"aix"}}, member{"package/index.js", ""})
	registry.offer("optional", map[string]any{"optionalDependencies": map[string]string{"elsewhere": "1"}}, member{"package/index.js", "module.exports = 'optional'\n"})
	install := func(names ...string) (deps.Layer, error) {
		return installer.Install(t.Context(), deps.Request{Interpreter: sandbox.Node, Packages: names, Index: registry.URL})
	}
	for name, is := range map[string]error{"from-git": deps.ErrRefused, "from-ssh": deps.ErrRefused, "shadowing": deps.ErrRefused, "forged": deps.ErrUnsafe, "traversal": deps.ErrUnsafe, "not-there": deps.ErrNotFound} {
		if _, err := install(name); !errors.Is(err, is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	layer, err := install("aliased", "optional")
	if err != nil {
		t.Fatal(err)
	}
	var env sandbox.Environment
	layer.AddTo(&env)
	if got := evaluateNode(t, host, env, "import a from 'aliased'; import b from 'optional'; console.log(a, b)"); got != "scripted optional" {
		t.Errorf("the program says %q", got)
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, path := range registry.asked {
		if strings.Contains(path, "it-ran") {
			t.Error("a script of a package was run")
		}
	}
}

// FuzzParseLock: a lock that is accepted has only places within node_modules, names that hide nothing, and hashes.
func FuzzParseLock(f *testing.F) {
	hash := "sha512-" + base64.StdEncoding.EncodeToString(make([]byte, 64))
	for _, at := range []string{"node_modules/a", "node_modules/@s/a/node_modules/b", "node_modules/../x", "x", "../../etc", "node_modules", "/node_modules/a"} {
		npm := fmt.Sprintf(`{"lockfileVersion": 3, "packages": {%q: {"version": "1.0.0", "integrity": %q}}}`, at, hash)
		name := at[strings.LastIndex(at, "/")+1:]
		f.Add([]byte(fmt.Sprintf(`{"version": 1, "interpreter": "node", "requirements": ["a"], "files": [{"name": %q, "version": "1.0.0", "hash": "sha512:%0128d", "path": %q}], "npm": %s}`, name, 0, at, npm)))
	}
	for _, name := range []string{"b", "@s/b", "a/node_modules/b", "../b"} { // the package of an alias
		npm := fmt.Sprintf(`{"lockfileVersion": 3, "packages": {"node_modules/a": {"name": %q, "version": "1.0.0", "integrity": %q}}}`, name, hash)
		f.Add([]byte(fmt.Sprintf(`{"version": 1, "interpreter": "node", "requirements": ["a"], "files": [{"name": %q, "version": "1.0.0", "hash": "sha512:%0128d", "path": "node_modules/a"}], "npm": %s}`, name, 0, npm)))
	}
	f.Add([]byte(fmt.Sprintf(`{"version": 1, "interpreter": "python", "target": "cp311", "requirements": ["a>=1"], "files": [{"name": "a", "version": "1.0", "hash": "sha256:%064d"}]}`, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = deps.NPMFiles(data)
		lock, err := deps.ParseLock(data)
		if err != nil {
			return
		}
		for _, file := range lock.Files {
			if lock.Interpreter == sandbox.Node && (!filepath.IsLocal(file.Path) || !strings.HasPrefix(file.Path, "node_modules/") || strings.Contains(file.Path, "/../")) ||
				lock.Interpreter == sandbox.Node && (!filepath.IsLocal(file.Name) || strings.Contains(file.Name, "node_modules")) || !strings.HasPrefix(file.Hash, "sha") || file.Name == "json" && lock.Interpreter == sandbox.Python {
				t.Errorf("%+v is accepted", file)
			}
		}
		if _, err := deps.ParseLock(lock.JSON()); err != nil {
			t.Errorf("what was accepted and written again is not: %v", err)
		}
	})
}
