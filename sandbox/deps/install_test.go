package deps_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/image"
	"sallyport/sandbox/image/imagetest"
)

// TestInstallWithoutTLS: an index that the settings name by http is asked as it is.
func TestInstallWithoutTLS(t *testing.T) {
	t.Parallel()
	installer, _, _ := newInstaller(t, deps.Options{})
	index := newIndex(t)
	index.offer("plain", "1.0", nil, member{"plain.py", ""})
	server := httptest.NewServer(index)
	defer server.Close()
	layer, err := installer.Install(t.Context(), deps.Request{Interpreter: sandbox.Python, Packages: []string{"plain"}, Index: server.URL + "/simple/"})
	if err != nil || len(layer.Packages) != 1 {
		t.Errorf("%+v, %v", layer.Packages, err)
	}
}

// TestInstallPython goes the whole way with real pip: resolve, fetch, unpack, import. What
// an index, or who writes packages, can do wrong comes to what the caller is told.
func TestInstallPython(t *testing.T) {
	installer, host, dir := newInstaller(t, deps.Options{Bytes: 32 << 20})
	index := newIndex(t)
	index.offer("greeting", "1.0", []string{"words>=2"}, member{"greeting/__init__.py", "import words\nhello = words.hello + '!'\n"})
	index.offer("greeting", "0.9", nil, member{"greeting/__init__.py", "hello = 'old'\n"})
	index.offer("words", "2.1", nil, member{"words.py", "hello = 'hello'\n"})
	index.add("words", "words-3.0-py3-none-any.whl", wheelOf("words", "3.0", nil, member{"words.py", "hello = 'yanked'\n"}), `data-yanked="bad"`)
	request := deps.Request{Interpreter: sandbox.Python, Packages: []string{"Greeting >= 0.5"}, Index: index.url()}
	if _, ok := installer.Find(request); ok {
		t.Error("it is there before it was installed")
	}
	var layers [2]deps.Layer
	var work sync.WaitGroup
	for n := range layers {
		work.Go(func() {
			var err error
			if layers[n], err = installer.Install(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if t.Failed() {
		return
	}
	if diff := cmp.Diff(layers[0], layers[1]); diff != "" {
		t.Error("two at once got different layers", diff)
	}
	if asked := index.requests(); len(asked) != 4 {
		t.Errorf("the index was asked %q", asked)
	}
	layer := layers[0]
	want := []deps.Package{{Name: "greeting", Version: "1.0"}, {Name: "words", Version: "2.1"}}
	if diff := cmp.Diff(want, layer.Packages); diff != "" {
		t.Error(diff)
	}
	var env sandbox.Environment
	layer.AddTo(&env)
	if got := evaluate(t, host, env, "import greeting, sys; print(greeting.hello, greeting.__cached__)"); !strings.HasPrefix(got, "hello! "+deps.PythonDir+"/greeting/__pycache__/") {
		t.Errorf("the program says %q", got)
	}
	if got := evaluate(t, host, env, "import os\ntry: open('"+deps.PythonDir+"/new', 'w')\nexcept OSError: print('read-only')"); got != "read-only" {
		t.Errorf("the layer: %q", got)
	}
	if _, err := os.Stat(filepath.Join(layer.Dir, "greeting", "__pycache__", "__init__.cpython-311.pyc")); err != nil && strings.HasPrefix(layer.Lock.Target, "cp311-") {
		t.Error(err)
	}
	kept, err := deps.ParseLock(layer.Lock.JSON())
	if diff := cmp.Diff(layer.Lock, kept); diff != "" || err != nil {
		t.Error(diff, err)
	}
	again, err := deps.New(host, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := again.Find(request); !ok || found.Digest != layer.Digest {
		t.Errorf("another installer finds %v %v", found.Digest, ok)
	}
	t.Run("into an image", func(t *testing.T) { intoImage(t, installer, host, request) })
	t.Run("a lock holds", func(t *testing.T) { checkLock(t, index, request, layer) })
	t.Run("trouble", func(t *testing.T) { checkFailures(t, installer) })
}

// checkLock installs elsewhere from the lock of a layer, and then again when the file behind it is another.
func checkLock(t *testing.T, index *index, request deps.Request, layer deps.Layer) {
	t.Helper()
	index.offer("words", "2.2", nil, member{"words.py", "hello = 'newer'\n"})
	installer, _, _ := newInstaller(t, deps.Options{})
	request.Lock = &layer.Lock
	same, err := installer.Install(t.Context(), request)
	if err != nil || same.Digest != layer.Digest {
		t.Errorf("from the lock: %v, %v", same.Packages, err)
	}
	other := request
	other.Packages = []string{"greeting==0.9"}
	if _, err := installer.Install(t.Context(), other); !errors.Is(err, deps.ErrRefused) {
		t.Errorf("with a lock for something else: %v", err)
	}
	changed := newIndex(t)
	changed.offer("greeting", "1.0", []string{"words>=2"}, member{"greeting/__init__.py", "hello = 'changed'\n"})
	changed.offer("words", "2.1", nil, member{"words.py", "hello = 'hello'\n"})
	request.Index = changed.url()
	if _, err := installer.Install(t.Context(), request); !errors.Is(err, deps.ErrUnsafe) {
		t.Errorf("a file is another than that of the lock: %v", err)
	}
}

// checkFailures is what goes wrong, and the part of the error that says what to do.
func checkFailures(t *testing.T, installer *deps.Installer) {
	t.Helper()
	index, elsewhere := newIndex(t), newIndex(t)
	index.add("mismatch", "mismatch-1.0-py3-none-any.whl", wheelOf("mismatch", "1.0", nil), "#sha256="+strings.Repeat("0", 64))
	index.offer("traversal", "1.0", nil, member{"../../x", "1"})
	index.offer("forged", "1.0", nil, member{"WRONG:forged.py", "1"})
	index.add("sourceonly", "sourceonly-1.0.tar.gz", tgzOf(member{"sourceonly-1.0/setup.py", "raise SystemExit(1)"}), "")
	index.offer("shadowing", "1.0", []string{"json"})
	index.offer("json", "1.0", nil)
	index.links["away"] = []string{`<a href="` + elsewhere.URL + `/files/away-1.0-py3-none-any.whl">away-1.0-py3-none-any.whl</a>`}
	index.links["endless"] = []string{`<a href="/files/endless-1.0-py3-none-any.whl">endless-1.0-py3-none-any.whl</a>`}
	index.serve = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "files/endless") {
			return false
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				break
			}
		}
		return true
	}
	for _, test := range []struct {
		name string
		is   error
		says string
	}{
		{"mismatch", deps.ErrUnsafe, "hash"},
		{"traversal", deps.ErrUnsafe, "leads out"},
		{"forged", deps.ErrUnsafe, "not what RECORD says"},
		{"sourceonly", deps.ErrNotFound, "no wheel of it"},
		{"nosuchthing", deps.ErrNotFound, "has no nosuchthing"},
		{"mismatch==7", deps.ErrNotFound, "there are 1.0"},
		{"shadowing", deps.ErrRefused, "json"},
		{"away", deps.ErrRefused, strings.TrimPrefix(elsewhere.URL, "https://")},
		{"endless", deps.ErrLimit, "larger"},
	} {
		_, err := installer.Install(t.Context(), deps.Request{Interpreter: sandbox.Python, Packages: []string{test.name}, Index: index.url()})
		if !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if asked := elsewhere.requests(); len(asked) > 0 {
		t.Errorf("a host that is not allowed was asked %q", asked)
	}
}

// registry is npm's own on this machine, as its settings say.
func registry(t *testing.T) string {
	t.Helper()
	testutil.Program(t, "npm")
	out, err := exec.CommandContext(t.Context(), "npm", "config", "get", "registry").Output()
	if err != nil {
		t.Skipf("npm does not say its registry: %v", err)
	}
	address := strings.TrimSpace(string(out))
	response, err := http.Get(address)
	if err != nil {
		t.Skipf("npm's registry cannot be reached: %v", err)
	}
	response.Body.Close()
	return address
}

// intoImage installs packages for the Python of an image, by that Python.
func intoImage(t *testing.T, installer *deps.Installer, host *sandbox.Host, request deps.Request) {
	t.Helper()
	dir := testutil.ShortDir(t)
	root, err := image.Pull(t.Context(), imagetest.Push(t, imagetest.Python(t)), image.Options{Dir: dir, MountPoints: sandbox.MountPoints(), Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	env := sandbox.Environment{Root: root.Dir, Digest: root.Digest}
	request.Environment = env
	if _, ok := installer.Find(request); ok {
		t.Error("what was installed for this machine counts for an image")
	}
	layer, err := installer.Install(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	layer.AddTo(&env)
	if got := evaluate(t, host, env, "import greeting, os; print(greeting.hello, os.path.exists('/usr/share/doc'))"); got != "hello! False" {
		t.Errorf("the program says %q", got)
	}
	if left, err := os.ReadDir(filepath.Join(root.Dir, "work")); err == nil && len(left) > 0 {
		t.Error("the driver was written into the image")
	}
}

func TestInstallNPM(t *testing.T) {
	registry := registry(t)
	installer, host, _ := newInstaller(t, deps.Options{})
	request := deps.Request{Interpreter: sandbox.Node, Packages: []string{"is-odd@^3.0.1", "ms@2.1.3"}, Index: registry}
	layer, err := installer.Install(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	var env sandbox.Environment
	layer.AddTo(&env)
	code := "import odd from 'is-odd'; import ms from 'ms'; console.log(odd(3), ms('2 days'))"
	if got := evaluateNode(t, host, env, code); got != "true 172800000" {
		t.Errorf("the program says %q", got)
	}
	want := []deps.Package{{Name: "is-number", Version: "6.0.0"}, {Name: "is-odd", Version: "3.0.1"}, {Name: "ms", Version: "2.1.3"}}
	if diff := cmp.Diff(want, layer.Packages); diff != "" {
		t.Error(diff)
	}
}
