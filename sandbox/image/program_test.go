package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// described returns an image of layers with a description of its program.
func described(t testing.TB, config v1.Config, layers ...[]byte) v1.Image {
	t.Helper()
	image, err := mutate.Config(imageOf(t, "amd64", layers...), config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestProgram reads what images run, as whom and where.
func TestProgram(t *testing.T) {
	s, opts := newStore(t), options(t)
	opts.Program = true
	files := layerOf(t, entry{name: "etc/passwd", body: "root:x:0:0::/:/bin/sh\nbad\nmcp:x:1234:77::/app:/bin/sh\nodd:x:-1:0::/:\n"}, entry{name: "etc/group", body: "staff:x:50:\n"},
		entry{name: "etc/resolv.conf", link: "/run/elsewhere", kind: '2'}, entry{name: "real", kind: '5'}, entry{name: "app", link: "real", kind: '2'}, entry{name: "file"})
	for _, test := range []struct {
		name   string
		config v1.Config
		want   Program
	}{
		{"nothing", v1.Config{}, Program{Dir: "/"}},
		{"all", v1.Config{Entrypoint: []string{"/run"}, Cmd: []string{"a b"}, Env: []string{"A=b"}, WorkingDir: "app/x", User: "mcp", Volumes: map[string]struct{}{"/data/": {}, "etc": {}, "/app/x": {}, "/": {}}},
			Program{Entrypoint: []string{"/run"}, Cmd: []string{"a b"}, Env: []string{"A=b"}, Dir: "/app/x", UID: 1234, GID: 77, Volumes: []string{"/data"}}},
		{"number", v1.Config{User: "1234"}, Program{Dir: "/", UID: 1234, GID: 77}},
		{"unknown number", v1.Config{User: "5:staff"}, Program{Dir: "/", UID: 5, GID: 50}},
		{"unknown name", v1.Config{User: "nobody"}, Program{Dir: "/", Problem: `its user "nobody" is not in its /etc/passwd`}},
		{"negative", v1.Config{User: "odd"}, Program{Dir: "/", Problem: `its user "odd" is not in its /etc/passwd`}},
		{"a file as folder", v1.Config{WorkingDir: "/file/x"}, Program{Dir: "/file/x", Problem: `its folder "/file/x": the image is not safe to unpack: its folder is a file`}},
		{"NUL", v1.Config{Cmd: []string{"a\x00b"}}, Program{Dir: "/", Problem: "its description has a NUL byte"}},
		{"long", v1.Config{Cmd: []string{strings.Repeat("x", maxWordsBytes+1)}}, Program{Dir: "/", Problem: "its description of its program is too long"}},
	} {
		root, err := Pull(t.Context(), s.push(t, described(t, test.config, files)), opts)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, root.Program); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
		for _, name := range []string{"etc/resolv.conf", "etc/hosts"} {
			if info, err := os.Lstat(filepath.Join(root.Dir, name)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %s: %v, %v", test.name, name, info, err)
			}
		}
	}
	if _, err := Pull(t.Context(), s.push(t, described(t, v1.Config{WorkingDir: "/../../x"})), opts); err != nil { // without a layer
		t.Error(err)
	}
}

// TestPinOnce checks that a tag keeps the digest of its first use, and that its move is seen.
func TestPinOnce(t *testing.T) {
	s, opts := newStore(t), options(t)
	first := s.push(t, described(t, v1.Config{Cmd: []string{"one"}}))
	tag := s.host + "/team/image:latest"
	digest := first[strings.Index(first, "@"):]
	for _, want := range []string{"", tag + digest} {
		if moved, err := Moved(t.Context(), tag, opts); err != nil || moved != "" {
			t.Errorf("it moved to %q, %v", moved, err)
		}
		if want == "" {
			continue
		}
		if got, err := PinOnce(t.Context(), tag, opts); err != nil || got != want {
			t.Errorf("pinned as %q, %v, want %s", got, err, want)
		}
	}
	second := s.push(t, described(t, v1.Config{Cmd: []string{"two"}}))
	if got, err := PinOnce(t.Context(), tag, opts); err != nil || got != tag+digest {
		t.Errorf("after the move it is %q, %v", got, err)
	}
	if got, err := Moved(t.Context(), tag, opts); err != nil || got != tag+second[strings.Index(second, "@"):] {
		t.Errorf("it moved to %q, %v", got, err)
	}
	if got, err := PinOnce(t.Context(), first, opts); err != nil || got != first {
		t.Errorf("with a digest: %q, %v", got, err)
	}
	if _, err := PinOnce(t.Context(), s.host+"/team/none:latest", opts); err == nil {
		t.Error("a tag that does not exist is pinned")
	}
	if removed, err := Prune(t.Context(), opts.Dir, PruneOptions{}); err != nil || len(removed) != 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
}
