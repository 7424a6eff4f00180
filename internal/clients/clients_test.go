package clients_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/clients"
	"sallyport/internal/settingsfile"
	"sallyport/internal/testutil/golden"
)

// place is where all tests are.
func place() clients.System {
	return clients.System{OS: "linux", Home: "/home/ada", Dir: "/work/shop", Getenv: func(string) (string, bool) { return "", false },
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
}

func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/import/*.*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if filepath.Ext(file) == ".txt" {
			continue
		}
		if all[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func client(t testing.TB, name string) clients.Client {
	t.Helper()
	c, ok := clients.Find(name)
	if !ok {
		t.Fatalf("no client %s", name)
	}
	return c
}

func stem(file string) string {
	return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
}

// TestImport shows what becomes of settings of each client: the notes, the names of the
// variables with their secrets, and the upstreams.yaml, which holds no secret and loads.
func TestImport(t *testing.T) {
	seen := map[string]bool{}
	for file, data := range fixtures(t) {
		t.Run(stem(file), func(t *testing.T) {
			c := client(t, stem(file))
			seen[c.Name] = true
			servers, notes, err := clients.NewReader(place()).Read(c, c.UserFile(place()), data)
			if err != nil {
				t.Fatal(err)
			}
			f, err := settingsfile.Open(filepath.Join(t.TempDir(), "upstreams.yaml"), nil)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := clients.Merge(f, []clients.Found{{Client: c, Servers: servers}})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(f.Data), "S3cret") {
				t.Errorf("a secret is in the file:\n%s", f.Data)
			}
			again, err := clients.Merge(f, []clients.Found{{Client: c, Servers: servers}})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range again {
				if row.Outcome == clients.Added {
					t.Errorf("%s is added twice", row.Name)
				}
			}
			golden.Check(t, "testdata/import/"+c.Name+".txt", report(rows, notes)+"---\n"+string(f.Data))
		})
	}
	for _, c := range clients.All() {
		if !seen[c.Name] {
			t.Errorf("no fixture of %s", c.Title)
		}
	}
}

func report(rows []clients.Row, notes []string) string {
	var b strings.Builder
	for _, note := range notes {
		fmt.Fprintln(&b, "file:", note)
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "%s: %s\n", row.Name, row.Outcome)
		for _, note := range row.Notes {
			fmt.Fprintf(&b, "  %s\n", note)
		}
		for _, name := range slices.Sorted(maps.Keys(row.Secrets)) {
			fmt.Fprintf(&b, "  %s=%s\n", name, row.Secrets[name])
		}
	}
	return b.String()
}
