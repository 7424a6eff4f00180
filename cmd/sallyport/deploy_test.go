package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// readDeployFile is a file of docs/deploy.
func readDeployFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDeployedCommands: the command lines of the service and the container are valid, and their settings can be read.
func TestDeployedCommands(t *testing.T) {
	container := readDeployFile(t, "Containerfile")
	lines := map[string][]string{}
	for _, name := range units {
		unit := strings.NewReplacer("${JOIN}", "tls://n1:4222", "$OPTIONS", "--seats 8 --label region=eu").Replace(readDeployFile(t, name))
		for _, found := range regexp.MustCompile(`(?m)^ExecStart=\S+/sallyport (.*)$`).FindAllStringSubmatch(unit, -1) {
			lines[name] = strings.Fields(found[1])
		}
	}
	for _, found := range regexp.MustCompile(`(?m)(HEALTHCHECK|^CMD).*?(\[.*\])$`).FindAllStringSubmatch(container, -1) {
		var words []string
		if err := json.Unmarshal([]byte(found[2]), &words); err != nil {
			t.Fatal(err)
		}
		if found[1] == "HEALTHCHECK" {
			words = words[1:] // CMD has an ENTRYPOINT
		}
		lines[found[1]] = words
	}
	if len(lines) != 4 {
		t.Fatalf("found %v", lines)
	}
	for name, words := range lines {
		cmd, rest, err := newRoot(&app{App: &cli.App{Env: os.LookupEnv}}).Find(words)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.Name() != words[0] || cmd.Args(cmd, cmd.Flags().Args()) != nil {
			t.Errorf("%s: sallyport %s: %v", name, strings.Join(words, " "), err)
		}
	}
	env := func(name string) (string, bool) { return strings.Repeat("x", 32), name == "CI_TOKEN" }
	if cfg, err := config.Parse("upstreams.yaml", []byte(readDeployFile(t, "upstreams.yaml")), env); err != nil || len(cfg.HTTP.Hosts) != 1 || cfg.HTTP.Problem != "" {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, where := range []string{"nginx.conf", "compose.yaml"} {
		if !strings.Contains(readDeployFile(t, where), "tools.example.com") {
			t.Errorf("%s is for another host than upstreams.yaml", where)
		}
	}
}

// units are the services for systemd.
var units = []string{"sallyport.service", "sallyport-worker.service"}

// TestUnit: systemd understands the units, where there is one to ask.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	for _, name := range units {
		unit := strings.NewReplacer("/usr/local/bin/sallyport", "/bin/true", "man:sallyport-serve(1)", "man:man(1)", "man:sallyport-worker(1)", "man:man(1)").Replace(readDeployFile(t, name))
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
		if err != nil || strings.Contains(string(out), name) {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestUnitsAreAlike: a worker is restricted as a gateway is.
func TestUnitsAreAlike(t *testing.T) {
	restrictions := func(name string) string {
		_, rest, found := strings.Cut(readDeployFile(t, name), "\nNoNewPrivileges=yes\n")
		if !found {
			t.Fatalf("%s has no restrictions", name)
		}
		return rest
	}
	if restrictions(units[0]) != restrictions(units[1]) {
		t.Errorf("%s and %s have other restrictions", units[0], units[1])
	}
}
