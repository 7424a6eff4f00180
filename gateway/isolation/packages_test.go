//go:build linux

package isolation_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sallyport/internal/testutil/tlstest"
)

// nodeServer is the program of an npm package. It says in its tool's name what it was called with.
const nodeServer = `#!/usr/bin/env node
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', line => {
  const {id, method} = JSON.parse(line);
  if (id === undefined) return;
  const results = {
    initialize: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 'packaged', version: '1.0.0'}},
    'tools/list': {tools: [{name: process.argv.slice(2).join('_'), inputSchema: {type: 'object'}}]},
  };
  const answer = results[method] ? {result: results[method]} : {error: {code: -32601, message: 'no such method'}};
  console.log(JSON.stringify({jsonrpc: '2.0', id, ...answer}));
});
`

// repository is an npm registry and a package index with one package each.
type repository struct {
	*httptest.Server
	tarball, wheel []byte
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	server, err := os.ReadFile("testdata/server.py")
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{tarball: tarballOf(map[string]string{"package/cli.js": nodeServer, "package/package.json": manifest("")}), wheel: wheelOf(string(server))}
	r.Server = tlstest.NewServer(t, r)
	return r
}

// manifest is the package.json of the npm package, whose scripts must not run.
func manifest(dist string) string {
	return `{"name": "@x/packaged", "version": "1.0.0", "bin": {"other": "other.js", "packaged": "./cli.js"}, "scripts": {"postinstall": "exit 1"}` + dist + `}`
}

func tarballOf(files map[string]string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for name, content := range files {
		_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(content))
	}
	_, _ = w.Close(), zipped.Close()
	return out.Bytes()
}

func wheelOf(server string) []byte {
	files := []struct{ name, content string }{
		{"hostile/__init__.py", server},
		{"hostile-2.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hostile\nVersion: 2.0\n\n"},
		{"hostile-2.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"hostile-2.0.dist-info/entry_points.txt", "[other]\nhostile = x:y\n[console_scripts]\nhostile-server = hostile:main\n"},
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	record := ""
	add := func(name, content string) {
		f, _ := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		_, _ = f.Write([]byte(content))
	}
	for _, file := range files {
		sum := sha256.Sum256([]byte(file.content))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", file.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(file.content))
		add(file.name, file.content)
	}
	add("hostile-2.0.dist-info/RECORD", record+"hostile-2.0.dist-info/RECORD,,\n")
	_ = w.Close()
	return out.Bytes()
}

func (r *repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch path := request.URL.Path; {
	case path == "/@x/packaged/-/x.tgz":
		_, _ = w.Write(r.tarball)
	case path == "/@x/packaged":
		sum := sha512.Sum512(r.tarball)
		dist := fmt.Sprintf(`, "dist": {"tarball": "%s/@x/packaged/-/x.tgz", "integrity": "sha512-%s"}`, r.URL, base64.StdEncoding.EncodeToString(sum[:]))
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "@x/packaged", "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": json.RawMessage(manifest(dist))}})
	case path == "/simple/hostile/":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><html><body><a href="/files/hostile-2.0-py3-none-any.whl#sha256=%x">x</a></body></html>`, sha256.Sum256(r.wheel))
	case strings.HasPrefix(path, "/files/"):
		_, _ = w.Write(r.wheel)
	default:
		http.NotFound(w, request)
	}
}

// TestPackages starts a package of each language by name. The second start needs no registry.
func TestPackages(t *testing.T) {
	repository, launcher := newRepository(t), newLauncher(t)
	npx := "command: npx\nargs: [-y, \"@x/packaged@^1\", one, two]\nisolate: {registry: " + repository.URL + "}"
	uvx := "command: uvx\nargs: [hostile@2.0, --flag]\nisolate: {registry: " + repository.URL + "/simple/}"
	for _, start := range []string{"first", "without a registry"} {
		node, python := open(t, launcher, parse(t, npx)), open(t, launcher, parse(t, uvx))
		if err := node.Connect(t.Context()); err != nil {
			t.Fatalf("%s: %v\n%s", start, err, node.State().Stderr)
		}
		if tools := node.Tools(); len(tools) != 1 || tools[0].Wire != "one_two" {
			t.Errorf("%s: %+v", start, tools)
		}
		if got := text(run(t, python, "import sys; answer = sys.argv")); got != "[hostile --flag]" {
			t.Errorf("%s: %s", start, got)
		}
		if got := text(run(t, python, "open('/opt/packages/python/hostile/__init__.py', 'a')")); !strings.Contains(got, "PermissionError") {
			t.Errorf("%s: its own package: %s", start, got)
		}
		repository.Close()
	}
	err := open(t, launcher, parse(t, "command: npx\nargs: [-y, -p, \"@x/packaged@^1\", none]\nisolate: {registry: "+repository.URL+"}")).Connect(t.Context())
	if want := `package @x/packaged has no program "none"; it has other, packaged`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
