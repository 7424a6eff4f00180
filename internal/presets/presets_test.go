package presets_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"sallyport/internal/presets"
	"sallyport/internal/testutil/golden"
)

// TestPage holds the table of the page about add to the data files.
func TestPage(t *testing.T) {
	const path, begin, end = "../../docs/how-to/add-a-server.md", "<!-- presets -->\n", "<!-- /presets -->\n"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("the page has no place for the table")
	}
	want := before + begin + table() + end + after
	if golden.Update() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Error("the table is stale; run go test ./internal/presets -update")
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| server | from | hosts | folders and values | tried |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range presets.All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.ID, from(p), cmp.Or(strings.Join(p.Hosts, ", "), "none"), cmp.Or(strings.Join(values(p), ", "), "none"), tried(p.Started))
	}
	return b.String()
}

func from(p presets.Preset) string {
	if len(p.Server.Packages) == 0 {
		return p.From()
	}
	return p.From() + " " + p.Server.Packages[0].Version
}

// values returns the required values, and the folders with their mode.
func values(p presets.Preset) (all []string) {
	add := func(name string, required bool) {
		if mode := p.Mounts[name]; mode != "" {
			all = append(all, name+" ("+mode+")")
		} else if required {
			all = append(all, name)
		}
	}
	for _, pack := range p.Server.Packages {
		for _, a := range pack.PackageArguments {
			add(cmp.Or(a.ValueHint, a.Name), a.IsRequired)
		}
		for _, v := range pack.EnvironmentVariables {
			add(v.Name, v.IsRequired)
		}
	}
	for _, r := range p.Server.Remotes {
		for _, h := range r.Headers {
			for name, in := range h.Variables {
				add(name, in.IsRequired)
			}
		}
	}
	if p.Home == "keep" {
		all = append(all, "a kept home")
	}
	return all
}

func tried(s presets.Started) string {
	if s.Without != "" {
		return s.Without
	}
	return fmt.Sprintf("%d tools", s.Tools)
}
