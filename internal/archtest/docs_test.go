package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// otherNames are names in the docs that look like files or packages of this repository, and are not.
var otherNames = map[string]string{
	"config.json": "of an OCI bundle, made at run time", "tools/list": "a method of MCP", "tools/call": "a method of MCP",
	"workflows/hello.yaml": "an example of a definition", "NAME_test.yaml": "how tests are called",
	".mcp.json": "settings of a client", ".cursor/mcp.json": "settings of a client", ".vscode/mcp.json": "settings of a client",
	"plugins.lock": "made at run time",
	"A.txt":        "an example of a name", "a.txt": "an example of a name",
	"getUser.py": "an example of a name", "getuser.py": "an example of a name",
}

var (
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
	fileName    = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*\.(go|md|py|ts|mjs|sh|txt|txtar|yaml|yml|json|jsonl|lock|mod)$`)
	testName    = regexp.MustCompile(`\.(Test|Fuzz|Benchmark)\w+$`) // of a package; sandbox.TestAttacksAreListed checks that it exists
	packageName = regexp.MustCompile(`^(cmd|gateway|codegen|sandbox|index|internal|bench|tools|docs)(/[\w.-]+)*/?$`)
)

// TestDocsNameWhatExists checks that files and packages in the docs exist: a file by its path or the end of it, a package by its path.
func TestDocsNameWhatExists(t *testing.T) {
	root := testutil.ModuleRoot(t)
	paths := tree(t, root)
	docs, _ := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	checked := 0
	for _, doc := range append(docs, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inBackticks.FindAllSubmatch(text, -1) {
			name := testName.ReplaceAllString(string(found[1]), "")
			if _, known := otherNames[name]; known || !fileName.MatchString(name) && !packageName.MatchString(name) {
				continue
			}
			checked++
			if end := "/" + strings.TrimSuffix(name, "/"); !slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, end) }) {
				t.Errorf("%s names `%s`, which does not exist", filepath.Base(doc), name)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d names were found in the docs", checked)
	}
}

var (
	packageRow = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| ([^|]*[^| ][^|]*) \\| (`[^|]+`)? ?\\|$")
	testCell   = regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:\\.\\.\\.)?`")
)

// TestExplanationIsShort checks the length of pages.
func TestExplanationIsShort(t *testing.T) {
	root := testutil.ModuleRoot(t)
	for page, most := range map[string]int{
		"docs/explanation/architecture.md": 2500, "docs/explanation/limits.md": 2500, "docs/explanation/security-model.md": 3550,
		"docs/explanation/libraries.md": 1000, "CONTRIBUTING.md": 2500,
	} {
		if words := len(strings.Fields(readDoc(t, filepath.Join(root, page)))); words > most {
			t.Errorf("%s has %d words, not at most %d", page, words, most)
		}
	}
}

// TestArchitecturePage checks that each main type in the table of packages exists in its package.
func TestArchitecturePage(t *testing.T) {
	root := testutil.ModuleRoot(t)
	text := readDoc(t, filepath.Join(root, "docs", "explanation", "architecture.md"))
	table, _, found := strings.Cut(text, "\n## The way of one call")
	rows := packageRow.FindAllStringSubmatch(table, -1)
	if !found || len(rows) < 40 {
		t.Fatalf("only %d packages", len(rows))
	}
	for _, row := range rows {
		var code strings.Builder
		for _, name := range inBackticks.FindAllStringSubmatch(row[1], -1) {
			code.WriteString(packageCode(t, filepath.Join(root, name[1])))
		}
		for _, name := range inBackticks.FindAllStringSubmatch(row[3], -1) {
			if !strings.Contains(code.String(), "\ntype "+name[1]+" ") {
				t.Errorf("%s has no type %s", row[1], name[1])
			}
		}
	}
}

// TestSecurityModelNamesTests checks that the tests and fuzzers that the security model names exist.
func TestSecurityModelNamesTests(t *testing.T) {
	root := testutil.ModuleRoot(t)
	var tests strings.Builder
	for _, path := range tree(t, root) {
		if strings.HasSuffix(path, "_test.go") {
			tests.WriteString(readDoc(t, filepath.Join(root, path)))
		}
	}
	named := testCell.FindAllStringSubmatch(readDoc(t, filepath.Join(root, "docs", "explanation", "security-model.md")), -1)
	if len(named) < 50 {
		t.Fatalf("only %d tests", len(named))
	}
	for _, name := range named {
		end := "("
		if strings.HasSuffix(name[0], "...`") {
			end = ""
		}
		if !strings.Contains(tests.String(), "\nfunc "+name[1]+end) {
			t.Errorf("there is no %s", name[0])
		}
	}
}

func readDoc(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// packageCode returns the Go files of a folder, tests left out.
func packageCode(t *testing.T, folder string) string {
	t.Helper()
	var code strings.Builder
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s is no package", folder)
	}
	for _, path := range files {
		if !strings.HasSuffix(path, "_test.go") {
			code.WriteString(readDoc(t, path))
		}
	}
	return code.String()
}

// tree returns all files and folders below the root, each as "/path".
func tree(t *testing.T, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != root && d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		paths = append(paths, strings.TrimPrefix(path, root))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
