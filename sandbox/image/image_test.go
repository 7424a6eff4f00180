package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// entry is one entry of a layer, as it is written in tests: a file, unless it says otherwise.
type entry struct {
	name, body, link string
	kind             byte
	mode             int64
}

func layerOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.body)), ModTime: time.Unix(1e9, 0), Uid: 4242, Format: tar.FormatPAX}
		if e.kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// imageOf makes an image for that architecture out of layers.
func imageOf(t testing.TB, architecture string, layers ...[]byte) v1.Image {
	t.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: architecture, Config: v1.Config{Env: []string{"HOME=/", "PATH=/opt/py/bin:relative:/usr/bin"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

// store is a registry of the test, with something between it and who asks.
type store struct {
	host    string
	between func(w http.ResponseWriter, r *http.Request, next http.Handler)
	asked   atomic.Int32
}

func newStore(t testing.TB) *store {
	t.Helper()
	s := &store{}
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.between != nil && r.Method != http.MethodPut && r.Method != http.MethodPost && r.Method != http.MethodPatch {
			s.asked.Add(1)
			s.between(w, r, real)
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "https://")
	return s
}

// push puts an image or an index there, and returns how it is pinned.
func (s *store) push(t testing.TB, what remote.Taggable) string {
	t.Helper()
	tag, err := name.NewTag(s.host + "/team/image:latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Push(tag, what); err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Head(tag)
	if err != nil {
		t.Fatal(err)
	}
	return s.host + "/team/image@" + descriptor.Digest.String()
}

func options(t testing.TB) Options {
	t.Helper()
	return Options{Dir: filepath.Join(t.TempDir(), "images"), Architecture: "amd64", MountPoints: []string{"/workspace", "/run/sallyport"}, Logger: testutil.Logger(t), Limits: Limits{Stall: 5 * time.Second}}
}

// tree reads a directory: folders end in a slash, links have an arrow, executables a star.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		at, _ := filepath.Rel(dir, path)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			found[at+"/"] = ""
			if info.Mode().Perm() != 0o755 {
				t.Errorf("%s has mode %v", at, info.Mode())
			}
		case entry.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[at+"@"] = target
			return err
		case entry.Type().IsRegular():
			data, err := os.ReadFile(path)
			if info.Mode() != 0o644 && info.Mode() != 0o755 {
				t.Errorf("%s has mode %v", at, info.Mode())
			}
			if info.Mode()&0o111 != 0 {
				at += "*"
			}
			found[at] = string(data)
			return err
		default:
			t.Errorf("%s is %v", at, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPull(t *testing.T) {
	s, opts := newStore(t), options(t)
	defer setUmask(0o077)()
	reference := s.push(t, imageOf(t, "amd64",
		layerOf(t,
			entry{name: "usr/", kind: tar.TypeDir, mode: 0o700}, entry{name: "./usr/bin/", kind: tar.TypeDir},
			entry{name: "usr/bin/tool", body: "old", mode: 0o4755}, entry{name: "/usr/bin/python3.9", body: "\x7fELF", mode: 0o711},
			entry{name: "usr/bin/hard", link: "usr/bin/tool", kind: tar.TypeLink},
			entry{name: "bin", link: "usr/bin", kind: tar.TypeSymlink}, entry{name: "etc/shadow", link: "/etc/shadow", kind: tar.TypeSymlink},
			entry{name: "opt/py/bin/python", link: "/bin/python3.9", kind: tar.TypeSymlink},
			entry{name: "lower/a/1", body: "1"}, entry{name: "lower/a/2", body: "2"}, entry{name: "lower/b", body: "b"}, entry{name: "gone/x/y", body: "y"},
			entry{name: "was-a-folder/x", body: "x"}, entry{name: "was-a-file", body: "x"},
			entry{name: "dev/sda", kind: tar.TypeBlock}, entry{name: "pipe", kind: tar.TypeFifo}, entry{name: "tty", kind: tar.TypeChar},
			entry{name: "workspace", link: "/etc", kind: tar.TypeSymlink}, entry{name: "secret", mode: 0o600, body: "is readable"}),
		layerOf(t,
			entry{name: "bin/tool", body: "new", mode: 0o2755}, // through the link of the layer below
			entry{name: "lower/a/3", body: "3"}, entry{name: "lower/a/.wh..wh..opq"}, entry{name: "lower/.wh.b"}, entry{name: ".wh.gone"}, entry{name: ".wh.never-was"},
			entry{name: "was-a-folder", body: "file"}, entry{name: "was-a-file/", kind: tar.TypeDir}, entry{name: "was-a-file/x", body: "x"}),
		layerOf(t, entry{name: "lower/new", body: "new"}, entry{name: "lower/.wh.new"})))
	root, err := Pull(t.Context(), reference, opts)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"usr/": "", "usr/bin/": "", "usr/bin/tool*": "new", "usr/bin/hard*": "old", "usr/bin/python3.9*": "\x7fELF", "bin@": "usr/bin",
		"etc/": "", "etc/shadow@": "/etc/shadow", "opt/": "", "opt/py/": "", "opt/py/bin/": "", "opt/py/bin/python@": "/bin/python3.9",
		"lower/": "", "lower/a/": "", "lower/a/3": "3", "lower/new": "new", "was-a-folder": "file", "was-a-file/": "", "was-a-file/x": "x",
		"workspace/": "", "run/": "", "run/sallyport/": "", "secret": "is readable",
	}
	if diff := cmp.Diff(want, tree(t, root.Dir)); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(root.Path, []string{"/opt/py/bin", "/usr/bin"}) || root.Python != "/opt/py/bin/python" || root.Node != "" {
		t.Errorf("%+v", root)
	}
	if !strings.HasSuffix(reference, root.Digest) {
		t.Errorf("the digest is %s", root.Digest)
	}

	s.between = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusTeapot) }
	again, err := Pull(t.Context(), reference, opts)
	if diff := cmp.Diff(root, again); err != nil || diff != "" || s.asked.Load() > 0 {
		t.Errorf("what is there was fetched again: %v %s", err, diff)
	}
}

func TestPullIndex(t *testing.T) {
	s, opts := newStore(t), options(t)
	var index v1.ImageIndex = empty.Index
	for _, architecture := range []string{"arm64", "amd64"} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: imageOf(t, architecture, layerOf(t, entry{name: "for", body: architecture})),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	reference := s.push(t, index)
	digests := map[string]bool{}
	for _, architecture := range []string{"amd64", "arm64"} {
		opts.Architecture = architecture
		root, err := Pull(t.Context(), reference, opts)
		if err != nil {
			t.Fatal(err)
		}
		digests[root.Digest] = true
		if got := tree(t, root.Dir)["for"]; got != architecture {
			t.Errorf("%s got that for %s", architecture, got)
		}
	}
	if len(digests) != 2 {
		t.Errorf("digests: %v", digests)
	}
	opts.Architecture = "riscv64"
	if _, err := Pull(t.Context(), reference, opts); err == nil || !strings.Contains(err.Error(), `no image for linux/riscv64 (it has "linux/arm64", "linux/amd64")`) {
		t.Errorf("a machine that it is not for: %v", err)
	}
	checkNoPartial(t, opts.Dir, 2)
}

func TestPullRefuses(t *testing.T) {
	good := layerOf(t, entry{name: "a", body: "a"})
	one := func(entries ...entry) v1.Image { return imageOf(t, "amd64", layerOf(t, entries...)) }
	wrongDiff, _ := imageOf(t, "amd64", good).ConfigFile()
	wrongDiff.RootFS.DiffIDs[0].Hex = strings.Repeat("0", 64)
	short, _ := imageOf(t, "amd64", good, good).ConfigFile()
	short.RootFS.DiffIDs = short.RootFS.DiffIDs[:1]
	for _, test := range []struct {
		name  string
		image v1.Image
		limit func(*Limits)
		want  error
		text  string
	}{
		{"climbs", one(entry{name: "../x", body: "x"}), nil, ErrUnsafe, `unpack "../x"`},
		{"climbs in the middle", one(entry{name: "a/../../x", body: "x"}), nil, ErrUnsafe, ""},
		{"whiteout that climbs", one(entry{name: "a/.wh..."}, entry{name: "a/.wh..", body: ""}), nil, ErrUnsafe, ""},
		{"whiteout of nothing", one(entry{name: "a/.wh."}), nil, ErrUnsafe, ""},
		{"through a link out", one(entry{name: "out", link: "/etc", kind: tar.TypeSymlink}, entry{name: "out/passwd2", body: "x"}), nil, ErrUnsafe, "link to nowhere"},
		{"through a loop", one(entry{name: "a", link: "b", kind: tar.TypeSymlink}, entry{name: "b", link: "a", kind: tar.TypeSymlink}, entry{name: "a/x", body: "x"}), nil, ErrUnsafe, ""},
		{"below a file", one(entry{name: "a", body: "x"}, entry{name: "a/x", body: "x"}), nil, ErrUnsafe, "its folder is a file"},
		{"hard link out", one(entry{name: "x", link: "../../../../etc/passwd", kind: tar.TypeLink}), nil, ErrUnsafe, ""},
		{"hard link to a path of the host", one(entry{name: "x", link: "/etc/passwd", kind: tar.TypeLink}), nil, ErrUnsafe, "missing file"},
		{"hard link through a link out", one(entry{name: "e", link: "/etc", kind: tar.TypeSymlink}, entry{name: "x", link: "e/passwd", kind: tar.TypeLink}), nil, ErrUnsafe, ""},
		{"hard link to a folder", one(entry{name: "d/", kind: tar.TypeDir}, entry{name: "x", link: "d", kind: tar.TypeLink}), nil, ErrUnsafe, ""},
		{"a long name", one(entry{name: strings.Repeat("x", 256), body: "x"}), nil, ErrUnsafe, ""},
		{"a long path", one(entry{name: strings.Repeat("xxxxxxx/", 600), kind: tar.TypeDir}), nil, ErrUnsafe, "4800 bytes"},
		{"a bomb", one(entry{name: "zeros", body: strings.Repeat("\x00", minUnpackLimit+1)}), nil, ErrTooLarge, "200 times"},
		{"many bytes", one(entry{name: "a", body: "1234"}), func(l *Limits) { l.Bytes = 1000 }, ErrTooLarge, "unpacks to more than 1000 bytes"},
		{"many bytes to fetch", imageOf(t, "amd64", good), func(l *Limits) { l.Bytes = 100 }, ErrTooLarge, "to be fetched"},
		{"many files", one(slices.Repeat([]entry{{name: "a"}}, 11)...), func(l *Limits) { l.Entries = 10 }, ErrTooLarge, "more than 10 files"},
		{"many layers", imageOf(t, "amd64", good, good, good), func(l *Limits) { l.Layers = 2 }, ErrTooLarge, "3 layers"},
		{"no archive", imageOf(t, "amd64", []byte(strings.Repeat("junk", 500))), nil, tar.ErrHeader, ""},
		{"another machine's", imageOf(t, "arm64", good), nil, nil, "it is for linux/arm64"},
		{"another content than it says", withConfig(t, imageOf(t, "amd64", good), wrongDiff), nil, ErrChanged, "should be sha256:0000"},
		{"fewer layers than it says", withConfig(t, imageOf(t, "amd64", good, good), short), nil, ErrUnsafe, "describes 1 layers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, opts := newStore(t), options(t)
			opts.Limits = DefaultLimits()
			if test.limit != nil {
				test.limit(&opts.Limits)
			}
			_, err := Pull(t.Context(), s.push(t, test.image), opts)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
			checkNoPartial(t, opts.Dir, 0)
		})
	}
}

func withConfig(t *testing.T, image v1.Image, config *v1.ConfigFile) v1.Image {
	t.Helper()
	image, err := mutate.ConfigFile(image, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// checkNoPartial checks that there are so many images, and nothing beside them.
func checkNoPartial(t *testing.T, dir string, images int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".lock") {
			if left, err := os.ReadDir(filepath.Join(dir, entry.Name())); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			continue
		}
		images--
	}
	if images != 0 {
		t.Errorf("%d images more or less than there should be: %v", -images, entries)
	}
}

func TestPullReferences(t *testing.T) {
	s, opts := newStore(t), options(t)
	reference := s.push(t, imageOf(t, "amd64", layerOf(t, entry{name: "a", body: "a"})))
	tagged, digest, _ := strings.Cut(reference, "@")
	for _, test := range []struct {
		reference, text string
		want            error
	}{
		{tagged + ":latest", "now it is " + reference, ErrUnpinned},
		{tagged, "now it is " + reference, ErrUnpinned},
		{tagged + ":gone", "must be pinned", ErrUnpinned},
		{tagged + "@sha256:" + strings.Repeat("0", 64), "MANIFEST_UNKNOWN", nil},
		{tagged + "@sha256:123", "invalid image reference", nil},
		{tagged + "@md5:" + strings.Repeat("0", 32), "invalid image reference", nil},
		{"", "invalid image reference", nil}, {"http://x/y@" + digest, "invalid image reference", nil}, {"A B@" + digest, "invalid image reference", nil},
	} {
		_, err := Pull(t.Context(), test.reference, opts)
		if err == nil || !strings.Contains(err.Error(), test.text) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.reference, err)
		}
	}
	if _, err := Pull(t.Context(), tagged+":latest@"+digest, opts); err != nil {
		t.Errorf("a tag and a digest: %v", err)
	}
	opts.Dir = "relative"
	if _, err := Pull(t.Context(), reference, opts); err == nil {
		t.Error("images are kept in a relative path")
	}
}

func TestPullAtOnce(t *testing.T) {
	s, opts := newStore(t), options(t)
	reference := s.push(t, imageOf(t, "amd64", layerOf(t, entry{name: "a", body: "a"})))
	var layers atomic.Int32
	s.between = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			layers.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
		next.ServeHTTP(w, r)
	}
	var pulls sync.WaitGroup
	for range 8 {
		pulls.Go(func() {
			if root, err := Pull(t.Context(), reference, opts); err != nil || tree(t, root.Dir)["a"] != "a" {
				t.Errorf("%+v, %v", root, err)
			}
		})
	}
	pulls.Wait()
	if layers.Load() != 2 { // its description and its one layer
		t.Errorf("%d blobs were fetched", layers.Load())
	}
	checkNoPartial(t, opts.Dir, 1)
}

// TestPullEndsEarly: what was left by one who was canceled, or killed, is not there for the next.
func TestPullEndsEarly(t *testing.T) {
	s, opts := newStore(t), options(t)
	reference := s.push(t, imageOf(t, "amd64", layerOf(t, entry{name: "a", body: "a"}), layerOf(t, entry{name: "b", body: "b"})))
	ctx, cancel := context.WithCancel(t.Context())
	var blobs atomic.Int32
	s.between = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.Contains(r.URL.Path, "/blobs/") && blobs.Add(1) == 3 {
			cancel()
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	}
	if _, err := Pull(ctx, reference, opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled: %v", err)
	}
	checkNoPartial(t, opts.Dir, 0)

	s.between = nil
	locks, err := filepath.Glob(filepath.Join(opts.Dir, "*.lock"))
	if err != nil || len(locks) != 1 {
		t.Fatal(locks, err)
	}
	if err := os.MkdirAll(filepath.Join(locks[0], "work-killed", "rootfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	shelf := strings.TrimSuffix(locks[0], ".lock") // as if its files had been lost
	if err := os.MkdirAll(filepath.Join(shelf, "rootfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := Pull(t.Context(), reference, opts)
	if err != nil || len(tree(t, root.Dir)) != 5 {
		t.Errorf("after one that was killed: %v, %v", tree(t, root.Dir), err)
	}
	checkNoPartial(t, opts.Dir, 1)
}
