package settingsfile

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sallyport/internal/config"
	"sallyport/internal/testutil/golden"
)

// TestMigrate rewrites a file once: comments stay, the result loads, and a second time nothing changes.
func TestMigrate(t *testing.T) {
	data, err := os.ReadFile("testdata/migrate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made, changes, err := Migrate("upstreams.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%d: %s\n", c.Line, c.Text)
	}
	golden.Check(t, "testdata/migrate.txt", b.String()+"---\n"+string(made))
	if _, err := config.Parse("upstreams.yaml", made, nil); err != nil {
		t.Error(err)
	}
	if again, changes, err := Migrate("upstreams.yaml", made); err != nil || len(changes) > 0 || string(again) != string(made) {
		t.Errorf("the second time: %v, %v", changes, err)
	}
}

// TestMigrateKeeps has files that migrate does not change.
func TestMigrateKeeps(t *testing.T) {
	everything, err := os.ReadFile("../config/testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(everything),
		"mcpServers: {}\n",
		"upstreams: {a: {zzz: 1, type: magic}, servers: {command: x}, b: [], c: {type: stdio}}\n",
		"upstreams: {a: {url: x, endpoint: y, env: {dir: z}}}\n",
	} {
		if made, changes, err := Migrate("f", []byte(text)); err != nil || len(changes) > 0 || string(made) != text {
			t.Errorf("%q became %q: %v, %v", text, made, changes, err)
		}
	}
	if _, _, err := Migrate("f", []byte("a: [")); err == nil {
		t.Error("no error for a file that is no YAML")
	}
}
