package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

var (
	fencedBlock = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	inlineCode  = regexp.MustCompile("`((?:sallyport|make) [^`]*)`")
	usageLine   = regexp.MustCompile(`(?m)^Usage:\n  (.*)$`)
	verbsOf     = regexp.MustCompile(`^sallyport( [a-z][a-z-]*)*`)
	// startsCommand matches what another command begins with that starts one of the commands that are checked.
	startsCommand = regexp.MustCompile(`^(?:sudo (?:-u \S+ )?|ssh (?:-T )?[a-z]+ |claude mcp add sallyport -- (?:/path/to/)?)`)
	makeTarget    = regexp.MustCompile(`^make ((?:[a-z-]+ ?)+)`)
)

// notCommands are texts that begin like a command: flags that are named without their value, and an error.
var notCommands = []string{"sallyport serve --http", "sallyport bench --model", "sallyport is not the same on both machines"}

// TestDocsCommands checks that each sallyport command in the Markdown pages exists, with its flags, and each target of
// make: in shell examples and in text.
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
	if checked < 200 {
		t.Errorf("only %d commands were found", checked)
	}
}

// ownPort matches the port of a gateway.
var ownPort = regexp.MustCompile(`(?:--http[" ,]+[0-9a-z.]*|127\.0\.0\.1|localhost|sallyport):(\d+)`)

// urlWithPath matches a value of SALLYPORT_URL with a path. It is the address only, everywhere.
var urlWithPath = regexp.MustCompile(`SALLYPORT_URL"?[=,:] ?"?https?://[^\s"/]*/\w+`)

// otherPorts are those of other programs in the pages: collectors, models, an MCP server. The page about profiles has those of the servers that they replace.
var otherPorts = []string{"4318", "8000", "11434"}

// TestPort checks that all pages and examples have the gateway at the same port.
func TestPort(t *testing.T) {
	root := testutil.ModuleRoot(t)
	found := 0
	for _, folder := range []string{"README.md", "llms.txt", "docs", "cmd/sallyport/internal", "codegen/runtime/client", "tools/dist"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".svg") || strings.HasSuffix(path, ".png") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range ownPort.FindAllSubmatch(text, -1) {
				found++
				if port := string(m[1]); port != "8080" && !slices.Contains(otherPorts, port) && filepath.Base(path) != "replace-another-server.md" {
					t.Errorf("%s: %s", path, m[0])
				}
			}
			if m := urlWithPath.Find(text); m != nil {
				t.Errorf("%s: %s", path, m)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 30 {
		t.Errorf("only %d ports were found", found)
	}
}

// readsOnly matches commands that change nothing and need nothing but settings.
var readsOnly = regexp.MustCompile(`^sallyport (?:(?:upstreams|skills|token|environments|workflow) list|(?:upstreams|skills) review|environments prune .*--dry-run|config (?:check|show|schema|migrate --dry-run)|` +
	`policy test|workflow (?:runs|schema|lint)|approvals|executions|log sinks|auth status|version|completion [a-z]+)(?: --[a-z-]+(?:[= ]\S+)?)*$`)

// TestDocsRun runs the commands of the pages that only read, as they are printed.
func TestDocsRun(t *testing.T) {
	t.Parallel()
	home := makeHome(t)
	ran := map[string]bool{}
	for _, line := range shellLines(t, testutil.ModuleRoot(t)) {
		if !readsOnly.MatchString(line) || ran[line] {
			continue
		}
		ran[line] = true
		if status, _, stderr := home.run(t, strings.Fields(line)[1:]...); status != 0 {
			t.Errorf("%s: status %d, %s", line, status, stderr)
		}
	}
	if len(ran) < 15 {
		t.Errorf("only %d commands were run", len(ran))
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

// shellLines returns the commands of shell examples, and those in text that begin with sallyport or make: parts of lines
// and pipes, without comments and redirection.
func shellLines(t *testing.T, root string) (lines []string) {
	t.Helper()
	separator := regexp.MustCompile(`\s(?:#.*|>.*|<.*)$|\s(?:\||&&|;)\s`)
	for _, page := range markdownPages(t, root) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		var code []string
		for _, block := range fencedBlock.FindAllStringSubmatch(string(text), -1) {
			if language, _, _ := strings.Cut(block[1], " "); language == "sh" || language == "console" {
				code = append(code, strings.Split(strings.ReplaceAll(block[2], "\\\n", " "), "\n")...)
			}
		}
		for _, found := range inlineCode.FindAllStringSubmatch(fencedBlock.ReplaceAllString(string(text), ""), -1) {
			text := strings.ReplaceAll(found[1], "\n", " ")
			if !slices.ContainsFunc(notCommands, func(prefix string) bool { return text == prefix || strings.HasPrefix(text, prefix+" (") }) {
				code = append(code, text)
			}
		}
		for _, line := range code {
			for _, part := range separator.Split(strings.TrimSpace(line), -1) {
				if part = startsCommand.ReplaceAllString(strings.TrimSpace(part), ""); part != "" {
					lines = append(lines, part)
				}
			}
		}
	}
	return lines
}

// markdownPages returns the Markdown files of the repository, except test data and installed packages.
func markdownPages(t *testing.T, root string) (pages []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}
