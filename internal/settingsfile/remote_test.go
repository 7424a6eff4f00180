package settingsfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/settingsfile"
)

// TestSetRemote: sandbox.remote is set and removed; all else of the file stays.
func TestSetRemote(t *testing.T) {
	for _, test := range []struct{ before, set, removed string }{
		{"", "upstreams: {}\nsandbox:\n  remote: lima://vm\n", "upstreams: {}\n"},
		{"upstreams: {} # none\n", "upstreams: {} # none\nsandbox:\n  remote: lima://vm\n", "upstreams: {} # none\n"},
		{"sandbox:\n  memory: 1GiB # much\nupstreams: {}\n", "sandbox:\n  memory: 1GiB # much\n  remote: \"lima://vm\"\nupstreams: {}\n", "sandbox:\n  memory: 1GiB # much\nupstreams: {}\n"},
		{"upstreams: {}\nsandbox: {remote: ssh://box, memory: 1GiB}\n", "upstreams: {}\nsandbox: {remote: \"lima://vm\", memory: 1GiB}\n", "upstreams: {}\nsandbox: {memory: 1GiB}\n"},
	} {
		path := filepath.Join(t.TempDir(), "upstreams.yaml")
		if test.before != "" {
			if err := os.WriteFile(path, []byte(test.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := settingsfile.Open(path, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.SetRemote("lima://vm"); err != nil || string(f.Data) != test.set {
			t.Errorf("%q becomes %q, %v; want %q", test.before, f.Data, err, test.set)
		}
		if c, err := f.Config(); err != nil || c.Sandbox.Remote != "lima://vm" {
			t.Errorf("%q: %v", f.Data, err)
		}
		if err := f.SetRemote(""); err != nil || string(f.Data) != test.removed {
			t.Errorf("%q becomes %q, %v; want %q", test.set, f.Data, err, test.removed)
		}
		if err := f.SetRemote("lima://-f"); err == nil {
			t.Errorf("a wrong address was set: %q", f.Data)
		}
	}
}
