package deps_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/sandbox"
	"sallyport/sandbox/deps"
)

// TestCheck has attack L07, and the names of L10.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		kind sandbox.Interpreter
		text string
		want string // part of the error; "" is accepted
	}{
		{sandbox.Python, "pandas", ""},
		{sandbox.Python, "pandas>=2,<3", ""},
		{sandbox.Python, "requests[socks, security] == 2.32.3", ""},
		{sandbox.Python, "torch==2.3.0+cpu", ""},
		{sandbox.Python, "ruamel.yaml~=0.18", ""},
		{sandbox.Python, "numpy==1.26.*", ""},
		{sandbox.Python, "x!=1!2.0", ""},
		{sandbox.Python, "--index-url http://evil", "options"},
		{sandbox.Python, "-e git+https://evil/x", "options"},
		{sandbox.Python, "  -r/etc/passwd", "options"},
		{sandbox.Python, "pandas --index-url http://evil", "URLs"},
		{sandbox.Python, "pandas --pre", "write name"},
		{sandbox.Python, "pandas --config-settings=a=b", "write name"},
		{sandbox.Python, "pandas\n--index-url http://evil", "characters"},
		{sandbox.Python, "pandas \\", "characters"},
		{sandbox.Python, "file:///etc", "URLs"},
		{sandbox.Python, "FILE:x", "URLs"},
		{sandbox.Python, "pkg @ http://127.0.0.1/", "URLs"},
		{sandbox.Python, "pkg@x", "write name"},
		{sandbox.Python, "git+ssh://x/y", "URLs"},
		{sandbox.Python, "./local", "write name"},
		{sandbox.Python, "/etc/passwd", "write name"},
		{sandbox.Python, "..", "write name"},
		{sandbox.Python, "a/b", "write name"},
		{sandbox.Python, "x.whl; python_version<'3'", "characters"},
		{sandbox.Python, "pandas ;python_version", "markers"},
		{sandbox.Python, "pandas===2", "write name"},
		{sandbox.Python, "pandas==$HOME", "characters"},
		{sandbox.Python, "${HOME}", "characters"},
		{sandbox.Python, "pändas", "write name"},
		{sandbox.Python, "", "write name"},
		{sandbox.Python, strings.Repeat("a", 400), "too long"},
		{sandbox.Python, "json", "built in"},
		{sandbox.Python, "Asyncio==3.4.3", "built in"},
		{sandbox.Python, "servers", "taken"},
		{sandbox.Python, "SALLYPORT", "taken"},
		{sandbox.Python, "skills==1", "taken"},
		{sandbox.Node, "zod@3.25.0", ""},
		{sandbox.Node, "zod", ""},
		{sandbox.Node, "@types/node@^20", ""},
		{sandbox.Node, "a@>=1.2 <3 || 4.x", ""},
		{sandbox.Node, "a@1.2.3 - 2.0", ""},
		{sandbox.Node, "a@latest", ""},
		{sandbox.Node, "a@1.0.0-beta.1+build", ""},
		{sandbox.Node, "JSONStream@1.3.5", ""},
		{sandbox.Node, "a@npm:b@1", "after @"},
		{sandbox.Node, "a@git+https://x/y", "URLs"},
		{sandbox.Node, "a@file:../x", "URLs"},
		{sandbox.Node, "a@link:x", "after @"},
		{sandbox.Node, "a@workspace:*", "after @"},
		{sandbox.Node, "a@user/repo", "after @"},
		{sandbox.Node, "user/repo", "write name"},
		{sandbox.Node, "a@..", "after @"},
		{sandbox.Node, "a@./x", "after @"},
		{sandbox.Node, "a@~/x", "after @"},
		{sandbox.Node, "a@1.0.0-x.tgz", "after @"},
		{sandbox.Node, "../x", "write name"},
		{sandbox.Node, "@../x", "write name"},
		{sandbox.Node, "--registry=x", "options"},
		{sandbox.Node, "fs", "built in"},
		{sandbox.Node, "sallyport", "taken"},
		{sandbox.Node, "node_modules", "taken"},
	} {
		err := deps.Check(test.kind, []string{test.text})
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%.50q: %v", test.text, err)
		case test.want != "" && (!errors.Is(err, deps.ErrRefused) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%.50q: %v, want %q", test.text, err, test.want)
		}
	}
	if err := deps.Check(sandbox.Python, []string{"A_b", "a-B==1"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("one package under two spellings: %v", err)
	}
}

// FuzzCheck: what is accepted cannot be an option, a URL, a path or two lines.
func FuzzCheck(f *testing.F) {
	f.Add("pandas[x]>=2,<3")
	f.Add("@a/b@^1.2 || 3.x - 4")
	f.Add("a@file:x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []sandbox.Interpreter{sandbox.Python, sandbox.Node} {
			if deps.Check(kind, []string{text}) != nil {
				continue
			}
			name := strings.TrimSpace(text)
			if strings.HasPrefix(name, "-") || strings.HasPrefix(name, ".") || strings.ContainsAny(name, ":;\r\n\\'\"`$%&#?(){}") || kind == sandbox.Python && strings.ContainsAny(name, "/@") {
				t.Errorf("%q is accepted for %s", text, kind)
			}
			if rest, scoped := strings.CutPrefix(name, "@"); kind == sandbox.Node && strings.Count(rest, "/") > 1 || !scoped && strings.Contains(name, "/") {
				t.Errorf("%q is accepted for %s", text, kind)
			}
		}
	})
}

func TestHint(t *testing.T) {
	for _, test := range []struct {
		kind          sandbox.Interpreter
		message       string
		environment   string
		install       bool
		module, wants string
	}{
		{sandbox.Python, "No module named 'pandas'", "", true, "pandas", `pandas is not installed: install_dependencies(packages=["pandas"])`},
		{sandbox.Python, "No module named 'sklearn.linear_model'", "data", true, "sklearn", `sklearn is not installed: install_dependencies(packages=["scikit-learn"], environment="data")`},
		{sandbox.Python, "No module named 'cv2'", "", false, "cv2", "cv2 is not installed; the operator can add opencv-python-headless to environments.default.python.requirements"},
		{sandbox.Python, "No module named 'yaml'", "data", false, "yaml", "yaml is not installed; the operator can add PyYAML to environments.data.python.requirements"},
		{sandbox.Python, "No module named 'servers.gone'", "", true, "", ""},
		{sandbox.Python, "No module named 'tkinter'", "", true, "", ""},
		{sandbox.Python, "name 'pandas' is not defined", "", true, "", ""},
		{sandbox.Node, "Cannot find package 'zod' imported from /workspace/program.mjs", "", true, "zod", `zod is not installed: install_dependencies(packages=["zod"], language="typescript")`},
		{sandbox.Node, "Cannot find module '@scope/a/lib/x.js'", "web", false, "@scope/a", "@scope/a is not installed; the operator can add @scope/a to environments.web.typescript.packages"},
		{sandbox.Node, "Cannot find module './local.js'", "", true, "", ""},
		{sandbox.Node, "Cannot find module '/workspace/x.js'", "", true, "", ""},
	} {
		module := deps.Missing(test.kind, test.message)
		if module != test.module {
			t.Errorf("%s: missing is %q, want %q", test.message, module, test.module)
		}
		if module == "" {
			continue
		}
		if got := deps.Hint(test.kind, module, test.environment, test.install); got != test.wants {
			t.Errorf("%s: the hint is\n%s\nwant\n%s", test.message, got, test.wants)
		}
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("python/PyYAML-6.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: PyYAML\nVersion: 6.0\x1b[2J\n\nName: not this\n")
	write("python/PyYAML-6.0.dist-info/RECORD", "yaml/__init__.py,sha256=x,1\n_yaml/__init__.py,,\nPyYAML-6.0.dist-info/METADATA,,\n../../bin/x.py,,\nsix.py,,\npyyaml.libs/lib.so.1,,\n_ext.cpython-311-x86_64-linux-gnu.so,,\n")
	write("python/broken.dist-info/other", "")
	write("node_modules/zod/package.json", `{"version": "3.25.0"}`)
	write("node_modules/@scope/a/package.json", `{"version": "1.0.0"}`)
	write("node_modules/bad/package.json", `{`)
	if err := os.Symlink("/etc", filepath.Join(dir, "node_modules", "etc")); err != nil {
		t.Fatal(err)
	}
	python, err := deps.List(sandbox.Python, filepath.Join(dir, "python"), filepath.Join(dir, "python"))
	if err != nil || len(python) != 1 || python[0].Version != "6.0" || strings.Join(python[0].Modules, " ") != "_ext _yaml six yaml" {
		t.Errorf("of Python: %+v, %v", python, err)
	}
	for _, name := range []string{"pyyaml", "PyYAML", "yaml"} {
		if _, ok := deps.Find(sandbox.Python, python, name); !ok {
			t.Errorf("%s is not found", name)
		}
	}
	if _, ok := deps.Find(sandbox.Python, python, "pandas"); ok {
		t.Error("pandas is found")
	}
	node, err := deps.List(sandbox.Node, filepath.Join(dir, "node_modules"))
	if err != nil || len(node) != 2 || node[0].Name != "@scope/a" || node[1].Version != "3.25.0" {
		t.Errorf("of node: %+v, %v", node, err)
	}
}
