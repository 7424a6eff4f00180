package deps_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// newHost is a real one, of which nothing may be left at the end.
func newHost(t *testing.T) *sandbox.Host {
	t.Helper()
	state := testutil.ShortDir(t)
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: state, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		testutil.NoProcesses(t, state)
	})
	return host
}

// newInstaller keeps its layers in a folder that t removes, read-only as they are.
func newInstaller(t *testing.T, opts deps.Options) (*deps.Installer, *sandbox.Host, string) {
	t.Helper()
	host, dir := newHost(t), t.TempDir()
	opts.Logger = testutil.Logger(t)
	if opts.Certificates == "" {
		opts.Certificates = tlstest.Authority(t)
	}
	installer, err := deps.New(host, dir, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return installer, host, dir
}

// member is a file of a package.
type member struct{ name, content string }

// wheelOf makes a wheel whose RECORD is about its members. Members after "RECORD-" are not in it.
func wheelOf(name, version string, requires []string, members ...member) []byte {
	info := name + "-" + version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	members = append(slices.Clone(members), member{info + "METADATA", metadata + "\n"},
		member{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"})
	var record strings.Builder
	for i, m := range members {
		if rest, ok := strings.CutPrefix(m.name, "UNLISTED:"); ok {
			members[i].name = rest
			continue
		}
		sum := sha256.Sum256([]byte(m.content))
		if rest, ok := strings.CutPrefix(m.name, "WRONG:"); ok {
			members[i].name, m.name = rest, rest
			sum[0]++
		}
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", m.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(m.content))
	}
	record.WriteString(info + "RECORD,,\n")
	return zipOf(append(members, member{info + "RECORD", record.String()})...)
}

func zipOf(members ...member) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: zip.Deflate})
		if err == nil {
			_, err = f.Write([]byte(m.content))
		}
		if err != nil {
			panic(err)
		}
	}
	_ = w.Close()
	return out.Bytes()
}

func tgzOf(members ...member) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, m := range members {
		_ = w.WriteHeader(&tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.content)), Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(m.content))
	}
	_, _ = w.Close(), zipped.Close()
	return out.Bytes()
}

// index is a package index (PEP 503) that runs in the test.
type index struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte   // by file name
	links map[string][]string // anchors, by package
	asked []string
	serve func(w http.ResponseWriter, r *http.Request) bool // takes what it answers itself
}

func newIndex(t *testing.T) *index {
	t.Helper()
	x := &index{files: map[string][]byte{}, links: map[string][]string{}}
	x.Server = tlstest.NewServer(t, x)
	return x
}

func (x *index) url() string { return x.URL + "/simple/" }

// add offers a file, with its hash unless attributes say another.
func (x *index) add(name, file string, data []byte, attributes string) {
	sum := sha256.Sum256(data)
	anchor := "sha256=" + hex.EncodeToString(sum[:])
	if rest, ok := strings.CutPrefix(attributes, "#"); ok {
		anchor, attributes = rest, ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files[file] = data
	x.links[name] = append(x.links[name], fmt.Sprintf(`<a href="/files/%s#%s" %s>%s</a><br>`, file, anchor, attributes, file))
}

// offer adds a wheel of pure Python.
func (x *index) offer(name, version string, requires []string, members ...member) {
	x.add(strings.ReplaceAll(name, "_", "-"), name+"-"+version+"-py3-none-any.whl", wheelOf(name, version, requires, members...), "")
}

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.asked = append(x.asked, r.Method+" "+r.URL.Path)
	serve := x.serve
	data, isFile := x.files[strings.TrimPrefix(r.URL.Path, "/files/")]
	links, isPackage := x.links[strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple"), "/")]
	x.mu.Unlock()
	switch {
	case serve != nil && serve(w, r):
	case isFile:
		_, _ = w.Write(data)
	case isPackage:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!DOCTYPE html><html><body>%s</body></html>", strings.Join(links, "\n"))
	default:
		http.NotFound(w, r)
	}
}

func (x *index) requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.asked)
}

// evaluate runs a line of Python in a real sandbox that has the layers of an environment.
func evaluate(t *testing.T, host *sandbox.Host, env sandbox.Environment, code string) string {
	t.Helper()
	path := ""
	for _, dir := range env.PythonPath {
		path += fmt.Sprintf("sys.path.append(%q)\n", dir)
	}
	s := sandbox.Service{ID: "eval", Environment: sandbox.Environment{Root: env.Root, Digest: env.Digest}, Interpreter: sandbox.Python, Args: []string{"-I", "-S", "/work/main.py"}, Dir: "/work",
		Files: map[string][]byte{"main.py": []byte("import sys\n" + path + code + "\n")}, Mounts: env.Layers, Memory: 300 << 20, Processes: 32, OpenFiles: 128}
	if env.Python != "" {
		s.Interpreter, s.Args = "", append([]string{env.Python}, s.Args...)
	}
	return output(t, host, s)
}

// evaluateNode does the same with a module of node's.
func evaluateNode(t *testing.T, host *sandbox.Host, env sandbox.Environment, code string) string {
	t.Helper()
	return output(t, host, sandbox.Service{ID: "eval", Interpreter: sandbox.Node, Args: []string{"/work/main.mjs"}, Dir: "/work",
		Files: map[string][]byte{"main.mjs": []byte(code)}, Mounts: env.Layers, Memory: 400 << 20, Processes: 64, OpenFiles: 128})
}

func output(t *testing.T, host *sandbox.Host, service sandbox.Service) string {
	t.Helper()
	server, err := host.Serve(service)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(server)
	return strings.TrimSpace(out.String())
}
