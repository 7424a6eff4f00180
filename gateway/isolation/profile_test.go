//go:build linux

package isolation_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/isolation"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// TestProfile checks that a profile allows what a server was refused, and nothing else.
func TestProfile(t *testing.T) {
	testutil.TAP(t)
	profile, err := isolation.NewProfile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = profile.Close() })
	launcher := launcherWith(t, isolation.Options{Profile: profile, Checkpoints: t.TempDir(), Lookup: zone(map[string]string{})})
	code, notes, work := t.TempDir(), t.TempDir(), t.TempDir()
	text, err := os.ReadFile("testdata/server.py")
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{code + "/server.py": text, notes + "/a.txt": []byte("a")} {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, launcher, parse(t, "command: python3\nargs: ["+code+"/server.py]\nisolate: true"))
	run(t, s, "import socket, os\nfor at in [('api.example.com', 443), ('other.example.com', 8443), ('1.1.1.1', 443)]:\n  try: socket.create_connection(at, 2)\n  except OSError: pass")
	run(t, s, "answer = open('"+notes+"/a.txt').read()")
	run(t, s, "answer = open('"+work+"/out.txt', 'w').write('x')")
	run(t, s, "answer = [open(p) for p in ('/etc/shadow', '/no/such/file')]")
	run(t, s, "import os; open(os.path.expanduser('~/state'), 'w')")
	_ = s.Close()
	got, err := profile.Needs()
	if err != nil {
		t.Fatal(err)
	}
	want := config.Isolation{Hosts: []config.IsolationHost{{Name: "api.example.com"}, {Name: "other.example.com"}}, Home: config.HomeKeep, Mounts: []config.IsolationMount{
		{Path: code, Mode: config.MountReadOnly}, {Path: notes + "/a.txt", Mode: config.MountReadOnly}, {Path: work, Mode: config.MountWritable},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(work, "out.txt")); err == nil {
		t.Error("the server wrote to a folder")
	}
}
