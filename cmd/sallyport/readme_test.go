package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// examples returns the fenced blocks of a language in the README.
func examples(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "README.md"))
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
		t.Fatalf("the README has no example in %s", language)
	}
	return blocks
}

func TestReadmeSettings(t *testing.T) {
	env := func(name string) (string, bool) { return "value-of-" + name, true }
	for _, example := range examples(t, "yaml") {
		if _, err := config.Parse("README.md", []byte(example), env); err != nil {
			t.Error(err)
		}
	}
	for _, example := range examples(t, "json") {
		if !json.Valid([]byte(example)) {
			t.Errorf("not JSON: %s", example)
		}
	}
}

// TestReadmeCommands checks that each sallyport command in the README is one, and each make target too.
func TestReadmeCommands(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	verbs := regexp.MustCompile(`\b(serve|exec|search|tools|generate|doctor|version|import|install|upstreams|auth|workflow|bench)\b`)
	for _, example := range examples(t, "sh") {
		for line := range strings.Lines(example) {
			words := strings.Fields(line)
			switch {
			case len(words) > 1 && words[0] == "make" && !strings.Contains(string(makefile), "\n"+words[1]+":"):
				t.Errorf("no such target: %s", line)
			case len(words) > 1 && words[0] == "sallyport" && !verbs.MatchString(words[1]):
				t.Errorf("no such command: %s", line)
			}
		}
	}
}

// readme runs the README's programs against the real upstreams.
func (r *rig) readme(t *testing.T) {
	orders := filepath.Join(r.folder, "orders")
	if err := os.Mkdir(orders, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(orders, "2026-01.csv"), "date,customer,item,amount\n2026-01-01,Abela,x,10.50\n2026-01-02,Borg,y,7.25\n2026-01-03,Abela,z,2\n")
	python := strings.Replace(examples(t, "python")[0], "/data/orders", orders, 1)
	r.wantRun("python", python, false, `["Abela: 12.50","Borg: 7.25"]`)
	r.wantRun("typescript", examples(t, "typescript")[0], false, "The sum of 12.5 and 7.25 is 19.75.")
	if err := os.RemoveAll(orders); err != nil {
		t.Fatal(err)
	}
}
