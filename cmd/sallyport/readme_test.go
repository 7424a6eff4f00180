package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// examples returns the fenced blocks of a language in a page.
func examples(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), page))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no example in %s", page, language)
	}
	return blocks
}

// command returns the only line of the shell examples of a page that has a prefix, without its comment.
func command(t *testing.T, page, prefix string) string {
	t.Helper()
	var found []string
	for _, example := range examples(t, page, "sh") {
		for line := range strings.Lines(example) {
			if text, _, _ := strings.Cut(line, " #"); strings.HasPrefix(text, prefix) {
				found = append(found, strings.TrimSpace(text))
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d commands that begin with %q", page, len(found), prefix)
	}
	return found[0]
}

func TestReadmeSettings(t *testing.T) {
	env := func(name string) (string, bool) { return "/value-of-" + name, true }
	for _, page := range []string{"README.md", "docs/how-to/add-to-a-client.md"} {
		for _, example := range examples(t, page, "yaml") {
			if _, err := config.Parse(page, []byte(example), env); err != nil {
				t.Error(err)
			}
		}
	}
	for _, example := range examples(t, "docs/how-to/add-to-a-client.md", "json") {
		if !json.Valid([]byte(example)) {
			t.Errorf("not JSON: %s", example)
		}
	}
}

// TestReadmeLatency compares the figures of the README with the results of make bench-latency.
func TestReadmeLatency(t *testing.T) {
	root := testutil.ModuleRoot(t)
	results, err := os.ReadFile(filepath.Join(root, "bench", "results", "latency.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Case, Language string
		P50            float64
		Bare           struct{ P50 float64 }
	}
	rows := map[string]row{}
	for line := range strings.Lines(string(results)) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows[strings.TrimSpace(r.Case+" "+r.Language)] = r
	}
	crowd := rows["20 sessions at once: programs a second"]
	want := fmt.Sprintf("A Python program takes %.0f ms when a sandbox waits, %.0f ms right after another, %.0f ms in a new sandbox; "+
		"20 sessions at once run %.0f programs a second, bare interpreters %.0f (`make bench-latency`).",
		rows["warm pool (one waits, each run uses one up) python"].P50, rows["warm pool, one right after the other python"].P50, rows["empty pool python"].P50,
		crowd.P50, crowd.Bare.P50)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), want) {
		t.Errorf("the README does not say: %s", want)
	}
}

// TestDocsWorkflow runs the workflow of the guide on the settings of this repository.
func TestDocsWorkflow(t *testing.T) {
	root, runsc := testutil.ModuleRoot(t), testutil.Runsc(t)
	testutil.Upstreams(t)
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", command(t, "docs/how-to/add-to-a-client.md", "sallyport workflow run "))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(runsc)+":"+os.Getenv("PATH"), "XDG_DATA_HOME="+filepath.Join(dir, "data"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "XDG_RUNTIME_DIR="+testutil.ShortDir(t), "SALLYPORT_MEMORY="+filepath.Join(dir, "memory.jsonl"))
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "/docs/README.md") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInstallNeedsNoGo runs make install as sudo would: what was built is copied, and Go is not called.
func TestInstallNeedsNoGo(t *testing.T) {
	bin, to, path := t.TempDir(), t.TempDir(), t.TempDir()
	sallyport, err := exec.LookPath("sallyport")
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"sallyport": sallyport, "runsc": testutil.Runsc(t)} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	testutil.WriteProgram(t, filepath.Join(path, "go"), "#!/bin/sh\nexit 1\n")
	install := func(user string) (string, error) {
		cmd := exec.Command("make", "-C", testutil.ModuleRoot(t), "install", "BIN="+bin, "DESTDIR="+to, "PREFIX=/opt")
		cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "SUDO_USER="+user)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := install("ann"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"bin/sallyport", "bin/runsc", "share/man/man1/sallyport-serve.1", "share/bash-completion/completions/sallyport"} {
		if info, err := os.Stat(filepath.Join(to, "opt", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out, err := install(""); err == nil {
		t.Errorf("without sudo it does not build:\n%s", out)
	}
}

// readme runs the README's programs against the real upstreams.
func (r *rig) readme(t *testing.T) {
	orders := filepath.Join(r.folder, "orders")
	if err := os.Mkdir(orders, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(orders, "2026-01.csv"), "date,customer,item,amount\n2026-01-01,Abela,x,10.50\n2026-01-02,Borg,y,7.25\n2026-01-03,Abela,z,2\n")
	python := strings.Replace(examples(t, "README.md", "python")[0], "/data/orders", orders, 1)
	r.wantRun("python", python, false, `["Abela: 12.50","Borg: 7.25"]`)
	r.wantRun("typescript", examples(t, "README.md", "typescript")[0], false, "The sum of 12.5 and 7.25 is 19.75.")
	if err := os.RemoveAll(orders); err != nil {
		t.Fatal(err)
	}
}
