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
	"A.txt": "an example of a name", "a.txt": "an example of a name",
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
	docs, _ := filepath.Glob(filepath.Join(root, "docs", "*.md"))
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
