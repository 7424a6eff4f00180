package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestAccessDoc runs the commands of docs/how-to/access.md, reads its settings, and finds each scope in its table.
func TestAccessDoc(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "how-to", "access.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range tool.Scopes() {
		if !bytes.Contains(text, []byte("\n| `"+scope+"` | ")) {
			t.Errorf("it does not tell of the scope %s", scope)
		}
	}
	env := func(name string) (string, bool) { return "value-of-" + name, name == "LAPTOP_TOKEN" }
	dir, ran, made := t.TempDir(), 0, ""
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if block[1] == "yaml" {
			if _, err := config.Parse("access.md", []byte(block[2]), env); err != nil {
				t.Errorf("an example is refused: %v", err)
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"--data", dir}, strings.Fields(line)[1:]...)
			if status := run(t.Context(), args, env, nil, &stdout, &stderr); status != 0 {
				t.Errorf("%s: %d %s", line, status, stderr.String())
			}
			made += stdout.String()
			ran++
		}
	}
	if shape := regexp.MustCompile("`(sp_[^`]+)`").FindSubmatch(text); ran < 4 || shape == nil || len(regexp.MustCompile(string(shape[1])).FindAllString(made, -1)) != 2 {
		t.Errorf("%d commands made %s", ran, made)
	}
}
