package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestEmptyLists: a command that lists what is there, and finds nothing, succeeds. It says so in one line on stderr; with
// --json it prints the object with an empty list, or no line if it prints a record to a line.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	home := makeHome(t)
	if err := os.WriteFile(home.settings(), []byte("upstreams: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lists := jsonLists()
	for _, path := range []string{"config check", "doctor", "example list", "search"} { // these always have something to print
		delete(lists, path)
	}
	lists["log"], lists["log export"] = "", ""
	for _, path := range slices.Sorted(maps.Keys(lists)) {
		args := strings.Fields(path)
		status, stdout, stderr := home.run(t, args...)
		if status != 0 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "sallyport: ") {
			t.Errorf("%s: status %d, stdout %q, stderr %q", path, status, stdout, stderr)
		}
		if path == "log export" { // which prints JSON anyway
			continue
		}
		status, stdout, _ = home.run(t, append(args, "--json")...)
		var got map[string]json.RawMessage
		switch {
		case status != 0 || lists[path] == "" && stdout != "":
			t.Errorf("%s --json: status %d, stdout %q", path, status, stdout)
		case lists[path] != "" && (json.Unmarshal([]byte(stdout), &got) != nil || string(got[lists[path]]) != "[]"):
			t.Errorf("%s --json: %s", path, stdout)
		}
	}
}
