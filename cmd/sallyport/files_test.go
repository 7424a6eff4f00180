package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/testutil"
)

// TestFilesEndToEnd is how a model works with files: write the test, see it fail, write the code, see it pass; in
// both languages, over MCP, with the built binary, in two processes one after the other.
func TestFilesEndToEnd(t *testing.T) {
	testutil.Long(t)
	binary := testutil.Binary(t)
	r := &rig{t: t, state: testutil.ShortDir(t), folder: t.TempDir()}
	config := filepath.Join(t.TempDir(), "upstreams.yaml")
	r.write(filepath.Join(r.folder, "notes.txt"), "of the project")
	r.write(config, fmt.Sprintf("upstreams: {}\nprofiles: [files]\nworkspaces: {app: {path: %q, mode: rw}}\nsandbox: {timeout: 20s, runsc: %q}\n", r.folder, testutil.Runsc(t)))
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	testutil.ShareSnapshots(os.Getenv("XDG_CACHE_HOME"))
	r.connect(binary, config)
	type step struct {
		tool  string
		args  map[string]any
		fails bool
		want  []string
	}
	do := func(steps ...step) {
		t.Helper()
		for _, s := range steps {
			text, isError := r.call(s.tool, s.args)
			r.compare(fmt.Sprint(s.tool, " ", s.args), text, isError, s.fails, s.want)
		}
	}
	do(
		step{"initialize_code_file", map[string]any{"filename": "test_sum", "content": "import unittest\nfrom summing import total\n"}, false, []string{"made test_sum.py: 2 lines"}},
		step{"append_to_code_file", map[string]any{"file_path": "test_sum.py", "content": "class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(total([1, 2]), 3)\nunittest.main()\n"}, false, []string{"6 lines"}},
		step{"execute_code_file", map[string]any{"file_path": "test_sum.py"}, true, []string{"No module named 'summing'", "test_sum.py line 2"}},
		step{"initialize_code_file", map[string]any{"filename": "summing.py", "content": "def total(xs):\n    return max(xs)\n"}, false, nil},
		step{"execute_code_file", map[string]any{"file_path": "test_sum.py"}, true, []string{"FAIL: test", "2 != 3", "FAILED (failures=1)", "exited with status 1"}},
	)
	_ = r.session.Close()
	r.connect(binary, config) // another process finds the files
	do(
		step{"overwrite_file", map[string]any{"file_path": "summing.py", "old_text": "max(xs)", "new_text": "sum(xs)"}, false, []string{"edited summing.py: 2 lines"}},
		step{"execute_code_file", map[string]any{"file_path": "test_sum.py"}, false, []string{"Ran 1 test", "OK"}},
		step{"write_workspace_file", map[string]any{"filename": "sum.test.ts", "content": "import test from \"node:test\";\nimport assert from \"node:assert\";\nimport { total } from \"./sum.ts\";\ntest(\"sums\", () => assert.equal(total([1, 2]), 3));\n"}, false, nil},
		step{"execute_code_file", map[string]any{"file_path": "sum.test.ts"}, true, []string{`cannot import "./sum.ts"`, "sum.test.ts line 3", "no such file in /workspace"}},
		step{"write_workspace_file", map[string]any{"filename": "sum.ts", "content": "export const total = (xs: number[]): number => Math.max(...xs);\n"}, false, nil},
		step{"execute_code_file", map[string]any{"file_path": "sum.test.ts"}, true, []string{"fail 1", "exited with status 1"}},
		step{"overwrite_file", map[string]any{"file_path": "sum.ts", "content": "export const total = (xs: number[]): number => xs.reduce((a, b) => a + b, 0);\n"}, false, nil},
		step{"execute_code_file", map[string]any{"file_path": "sum.test.ts", "timeout": 10}, false, []string{"pass 1"}},
		step{"list_workspace_files", nil, false, []string{"sum.test.ts", "summing.py", "(4 files"}},
		step{"execute_code", map[string]any{"code": `open("made.txt", "w").write(open("notes.txt").read())`, "workspace": "app"}, false, []string{"14"}},
		step{"read_workspace_file", map[string]any{"filename": "made.txt", "workspace": "app"}, false, []string{"of the project"}},
	)
	if text, err := os.ReadFile(filepath.Join(r.folder, "made.txt")); err != nil || string(text) != "of the project" {
		t.Errorf("in the project: %q, %v", text, err)
	}
	if err := r.session.Close(); err != nil {
		t.Error(err)
	}
}
