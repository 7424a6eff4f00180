package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBenchPool: programs are timed in gateways of three kinds, in each language; upstreams are not started.
func TestBenchPool(t *testing.T) {
	t.Parallel()
	r := newExampleRunner(t)
	settings := filepath.Join(t.TempDir(), "upstreams.yaml")
	if err := os.WriteFile(settings, []byte("upstreams:\n  none: {command: /no/such/file}\nsandbox: {pool: {min: 1, max: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sallyport", "bench", "--config", settings, "--pool", "--runs", "1", "--json")
	cmd.Env = r.env
	out, err := cmd.Output()
	var got struct {
		Pool []struct {
			What, Language string
			First          float64
			Following      struct{ N int }
		}
	}
	if err != nil || json.Unmarshal(out, &got) != nil || len(got.Pool) != 6 {
		t.Fatalf("%v: %s", err, out)
	}
	seen := map[string]bool{}
	for _, row := range got.Pool {
		seen[row.Language+row.What] = row.First > 0 && row.Following.N == 1
	}
	for _, language := range []string{"Python", "TypeScript"} {
		for _, what := range []string{"nothing prepared", "without a pool", "with a pool"} {
			if !seen[language+what] {
				t.Errorf("%s, %s: %s", language, what, out)
			}
		}
	}
}
