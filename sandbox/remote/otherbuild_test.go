//go:build linux

package remote_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/sandboxtest"
)

// otherGuest are the files of the guests of another build: sallyport.together of Python is the only one that differs.
func otherGuest(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(runtime.Guest(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(runtime.Guest(), path)
		files[path] = &fstest.MapFile{Data: data, Mode: 0o444}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const changed = "sallyport/together.py"
	files[changed].Data = append(files[changed].Data, "\nBUILD = 'the next one'\n"...)
	return files
}

// TestOtherBuild: a worker of one build runs programs of gateways of two, each with the files of its own guests.
func TestOtherBuild(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const code = "import sallyport.together\nfrom sallyport import call\ncall('test.echo', {'n': 1})['args']['n'], getattr(sallyport.together, 'BUILD', 'this one')"
	for _, build := range []struct {
		guest fs.FS
		want  string
	}{{otherGuest(t), `[1,"the next one"]`}, {runtime.Guest(), `[1,"this one"]`}} {
		c, err := remote.New(m.dial, &remote.Options{Version: "v2", Guest: build.guest, Name: "ssh://box", Logger: testutil.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(sandboxtest.Tree()); err != nil {
			t.Fatal(err)
		}
		wants(t, c, sandboxtest.Job(sandbox.Python, code), build.want)
		wants(t, c, sandboxtest.Job(sandbox.Node, `const { call } = globalThis[Symbol.for("sallyport")]; export default (await call("test.echo", { n: 2 })).args.n`), "2")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	m.work.Wait()
}
