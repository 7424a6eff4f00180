package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	usageLine  = regexp.MustCompile(`(?m)^Usage:\n  (.*)$`)
	verbsOf    = regexp.MustCompile(`^sallyport( [a-z-]+)*`)
	makeTarget = regexp.MustCompile(`^make ((?:[a-z-]+ ?)+)`)
)

// TestDocsCommands checks that each sallyport command of a shell example in the docs exists, with its flags, and each
// target of make.
func TestDocsCommands(t *testing.T) {
	root := testutil.ModuleRoot(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	noEnv := func(string) (string, bool) { return "", false }
	checked := 0
	for _, line := range shellLines(t, root) {
		if targets := makeTarget.FindStringSubmatch(line); targets != nil {
			for target := range strings.FieldsSeq(targets[1]) {
				if !bytes.Contains(makefile, []byte("\n"+target+":")) && !bytes.Contains(makefile, []byte(" "+target+":")) {
					t.Errorf("no target %s: %s", target, line)
				}
			}
		}
		if args := strings.Fields(line); args[0] == "sallyport" {
			var stdout, stderr bytes.Buffer
			before, _, _ := strings.Cut(line, " -- ") // --help must be a flag of sallyport itself
			status := run(t.Context(), append(strings.Fields(before)[1:], "--help"), noEnv, nil, &stdout, &stderr)
			if usage := usageLine.FindStringSubmatch(stdout.String()); status != 0 || !exists(args, usage[1], stdout.String()) {
				t.Errorf("no such command, or flag: %s\n%s", line, &stderr)
			}
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("only %d commands were found", checked)
	}
}

// exists reports whether a command is the one that its help is of: --help prints the help of the nearest command that exists.
func exists(args []string, usage, help string) bool {
	verbs := strings.Fields(verbsOf.FindString(usage))
	if len(verbs) > len(args) || strings.Join(args[:len(verbs)], " ") != strings.Join(verbs, " ") {
		return false
	}
	return len(args) == len(verbs) || strings.HasPrefix(args[len(verbs)], "-") || !strings.Contains(help, "\nCommands:\n")
}

// shellLines returns the commands of the shell examples: parts of lines and pipes, without comments and redirection.
func shellLines(t *testing.T, root string) (lines []string) {
	t.Helper()
	pages := []string{"README.md", "CONTRIBUTING.md", "workflows/README.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	separator := regexp.MustCompile(`\s(?:#.*|>.*|<.*)$|\s(?:\||&&|;)\s`)
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(string(block[1]), "\\\n", " ")) {
				for _, part := range separator.Split(strings.TrimSpace(line), -1) {
					if part = strings.TrimPrefix(strings.TrimSpace(part), "sudo "); part != "" {
						lines = append(lines, part)
					}
				}
			}
		}
	}
	return lines
}
