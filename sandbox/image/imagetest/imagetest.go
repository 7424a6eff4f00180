//go:build linux

// Package imagetest makes OCI images out of this machine's own files, and a
// registry that has them, so that a real interpreter can be pulled without a network.
package imagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// Push makes an image for this machine of the layers, each a tar archive, puts it
// into a registry that lasts as long as the test, and returns how it is pinned.
func Push(tb testing.TB, layers ...[]byte) string {
	tb.Helper()
	return NewRegistry(tb).Push(tb, "latest", v1.Config{}, layers...)
}

// Registry is a registry that lasts as long as the test.
type Registry struct {
	// Repository is the name of the images that are pushed, without a tag.
	Repository string
	// Close ends it.
	Close func()
}

// Config describes the program of an image.
type Config = v1.Config

// NewRegistry returns an empty registry.
func NewRegistry(tb testing.TB) *Registry {
	tb.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0))) //nolint:forbidigo // the registry's own log, which goes nowhere
	server := httptest.NewUnstartedServer(handler)
	tlstest.StartHTTP1(tb, server) // the handler reads an upload with its lock held, which blocks the other streams of an HTTP/2 connection
	tb.Cleanup(server.Close)
	return &Registry{strings.TrimPrefix(server.URL, "https://") + "/tests/interpreter", server.Close}
}

// Push makes an image for this machine of the layers, gives it a tag, and returns how it is pinned.
func (r *Registry) Push(tb testing.TB, tag string, config Config, layers ...[]byte) string {
	tb.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: config})
	for _, data := range layers {
		layer, layerErr := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
			tarball.WithCompressionLevel(compression(data)), tarball.WithCompressedCaching)
		if err = errors.Join(err, layerErr); err != nil {
			tb.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			tb.Fatal(err)
		}
	}
	reference, err := name.NewTag(r.Repository + ":" + tag)
	if err != nil {
		tb.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		tb.Fatal(err)
	}
	return r.Repository + "@" + digest.String()
}

// compression returns the level of gzip for a layer. A large layer has stored blocks only: the race detector makes
// compression and decompression ten times slower.
func compression(layer []byte) int {
	if len(layer) > 4<<20 {
		return gzip.NoCompression
	}
	return gzip.BestSpeed
}

// skippedDir are parts of Python's library that are large and that no test imports.
var skippedDir = regexp.MustCompile(`/(test|tests|idlelib|lib2to3|ensurepip|distutils|turtledemo|tkinter|pydoc_data|unittest|venv|config-[^/]*|dist-packages|site-packages)$`)

// Python returns a layer with this machine's Python, as /usr/bin/python3: about 30 MB.
func Python(tb testing.TB) []byte {
	tb.Helper()
	real := resolve(tb, "/usr/bin/python3")
	library := "/usr/lib/" + filepath.Base(real)
	a := newArchive(tb)
	a.add(real)
	if real != "/usr/bin/python3" {
		a.link("/usr/bin/python3", filepath.Base(real))
	}
	var modules []string
	err := filepath.WalkDir(library, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skippedDir.MatchString(path):
			return filepath.SkipDir
		case entry.Type().IsRegular():
			a.add(path)
			if strings.HasSuffix(path, ".so") {
				modules = append(modules, path)
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range Libraries(tb, append(modules, real)...) {
		a.add(path)
	}
	return a.close()
}

// Layer returns a layer with files of this machine, each where it is here.
func Layer(tb testing.TB, paths ...string) []byte {
	tb.Helper()
	a := newArchive(tb)
	for _, path := range paths {
		a.add(path)
	}
	return a.close()
}

var libraryLine = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// Libraries are the shared libraries that programs of this machine need, the loader too.
func Libraries(tb testing.TB, programs ...string) []string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "ldd", programs...).Output() //nolint:forbidigo // it only reads, and ends at once
	if err != nil && len(out) == 0 {
		tb.Fatalf("ldd: %v", err)
	}
	var found []string
	for _, match := range libraryLine.FindAllStringSubmatch(string(out), -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func resolve(tb testing.TB, path string) string {
	tb.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		tb.Skipf("no %s here: %v", path, err)
	}
	return real
}

type archive struct {
	tb  testing.TB
	buf bytes.Buffer
	tar *tar.Writer
}

func newArchive(tb testing.TB) *archive {
	tb.Helper()
	a := &archive{tb: tb}
	a.tar = tar.NewWriter(&a.buf)
	return a
}

// add adds a file under the name that it has here, with what links lead to.
func (a *archive) add(path string) {
	a.tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		a.tb.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		a.tb.Fatal(err)
	}
	a.header(&tar.Header{Typeflag: tar.TypeReg, Name: path[1:], Mode: int64(info.Mode().Perm()), Size: int64(len(data)), ModTime: info.ModTime()})
	if _, err := a.tar.Write(data); err != nil {
		a.tb.Fatal(err)
	}
}

// Server returns a layer with a static MCP server, /server, that needs nothing else. Its tools are about, read, write and dial.
func Server(tb testing.TB) []byte {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "server")
	build := exec.CommandContext(tb.Context(), "go", "build", "-ldflags=-s -w", "-o", file, "./sandbox/image/imagetest/testdata/server") //nolint:forbidigo // a build ends by itself
	build.Dir, build.Env = testutil.ModuleRoot(tb), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	a := newArchive(tb)
	a.header(&tar.Header{Typeflag: tar.TypeReg, Name: "server", Mode: 0o755, Size: int64(len(data))})
	if _, err := a.tar.Write(data); err != nil {
		tb.Fatal(err)
	}
	return a.close()
}

// Texts returns a layer with files that hold these texts, by absolute path.
func Texts(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	a := newArchive(tb)
	for path, text := range files {
		a.header(&tar.Header{Typeflag: tar.TypeReg, Name: path[1:], Mode: 0o644, Size: int64(len(text))})
		if _, err := a.tar.Write([]byte(text)); err != nil {
			tb.Fatal(err)
		}
	}
	return a.close()
}

// Link returns a layer with a symbolic link at an absolute path.
func Link(tb testing.TB, path, target string) []byte {
	tb.Helper()
	a := newArchive(tb)
	a.link(path, target)
	return a.close()
}

func (a *archive) link(path, target string) {
	a.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: path[1:], Linkname: target})
}

func (a *archive) header(header *tar.Header) {
	a.tb.Helper()
	if err := a.tar.WriteHeader(header); err != nil {
		a.tb.Fatal(err)
	}
}

func (a *archive) close() []byte {
	a.tb.Helper()
	if err := a.tar.Close(); err != nil {
		a.tb.Fatal(err)
	}
	return a.buf.Bytes()
}
