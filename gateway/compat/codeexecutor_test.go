package compat_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/internal/config"
)

// storage is a folder of the host for the files of programs, with the settings that map it.
func storage(t *testing.T) (dir string, cfg config.Config) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-code-") //nolint:usetesting // a folder below /tmp cannot be mapped
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg = config.Default()
	cfg.Compat = config.CompatCodeExecutor
	cfg.Workspaces = map[string]config.MappedFolder{"default": {Path: dir, Mode: config.ModeWrite}}
	return dir, cfg
}

// TestCodeExecutorExamples makes the calls that the README of that server documents, with its arguments. numpy is not
// installed here: what it is for is done without.
func TestCodeExecutorExamples(t *testing.T) {
	t.Parallel()
	dir, cfg := storage(t)
	c := connect(t, open(t, cfg, gateway.Options{}), config.CompatCodeExecutor)
	path := regexp.MustCompile("^" + dir + `/matrix_gen_[a-z2-7]{8}\.py$`)
	said := c.call("execute_code", object{"code": "import random\nprint([[random.random() for _ in range(3)] for _ in range(3)])", "filename": "matrix_gen"})
	c.has(said, object{"status": "success"})
	full, _ := said["file_path"].(string)
	if name, _ := said["generated_filename"].(string); !path.MatchString(full) || filepath.Base(full) != name || !strings.HasPrefix(said["output"].(string), "[[0.") {
		t.Errorf("%v", said)
	}
	if again := c.call("execute_code", object{"code": "print(1)", "filename": "matrix_gen"}); again["file_path"] == full || again["output"] != "1\n" {
		t.Errorf("the same name again: %v", again)
	}
	c.has(c.call("check_installed_packages", object{"packages": []string{"numpy", "pandas", "non_existent_package"}}), object{
		"status": "success", "env_type": "venv", "all_installed": false, "not_installed": []string{"numpy", "pandas", "non_existent_package"},
		"package_details": object{"numpy": object{"installed": false, "error": "Package not found"}, "pandas": object{"installed": false, "error": "Package not found"}, "non_existent_package": object{"installed": false, "error": "Package not found"}},
	})
	c.has(c.call("install_dependencies", object{"packages": []string{"numpy", "pandas", "matplotlib"}}), object{
		"status": "error", "env_type": "venv", "error": "packages cannot be installed in environment default (the operator decides that)"})
	c.has(c.call("get_environment_config", object{}), object{"status": "success", "config": object{"type": "venv", "venv_path": "default"}})
	c.has(c.call("configure_environment", object{"type": "conda", "conda_name": "new_env_name"}), object{"status": "error"})
	c.has(c.call("configure_environment", object{"type": "conda"}), object{"status": "error", "error": "conda_name is required when type is 'conda'"})
	c.has(c.call("configure_environment", object{"type": "docker"}), object{"status": "error", "error": "Invalid arguments: 'type' is required and must be one of 'conda', 'venv', or 'venv-uv'"})
	made := c.call("initialize_code_file", object{"content": "def main():\n    print('Hello, world!')\n\nif __name__ == '__main__':\n    main()", "filename": "my_script"})
	file, _ := made["file_path"].(string)
	c.has(made, object{"status": "success", "message": "File initialized successfully", "filename": filepath.Base(file)})
	c.has(c.call("append_to_code_file", object{"file_path": file, "content": "\ndef another_function():\n    print('This was appended to the file')\n"}),
		object{"status": "success", "message": "Content appended successfully", "file_path": file})
	c.has(c.call("execute_code_file", object{"file_path": file}), object{"status": "success", "output": "Hello, world!\n", "file_path": file})
	whole := "def main():\n    print('Hello, world!')\n\nif __name__ == '__main__':\n    main()\ndef another_function():\n    print('This was appended to the file')\n"
	c.has(c.call("read_code_file", object{"file_path": file}), object{"status": "success", "content": whole, "file_path": file})
	if data, err := os.ReadFile(file); err != nil || string(data) != whole {
		t.Errorf("on the host: %q, %v", data, err)
	}
}

// TestCodeExecutorPaths: programs use the full paths that answers have, and variables that were set.
func TestCodeExecutorPaths(t *testing.T) {
	t.Parallel()
	dir, cfg := storage(t)
	c := connect(t, open(t, cfg, gateway.Options{}), config.CompatCodeExecutor)
	c.has(c.call("execute_code", object{"code": "open('" + dir + "/rows.txt', 'w').write('3 rows')\nprint(open('rows.txt').read(), '" + dir + "x')"}), object{"status": "success", "output": "3 rows " + dir + "x\n"})
	if data, err := os.ReadFile(filepath.Join(dir, "rows.txt")); err != nil || string(data) != "3 rows" {
		t.Errorf("on the host: %q, %v", data, err)
	}
	c.has(c.call("set_runtime_env", object{"variables": object{"MODE": "production"}}), object{"status": "success", "variables": object{"MODE": "production"}})
	c.has(c.call("execute_code", object{"code": "import os; print(os.environ['MODE'])"}), object{"output": "production\n"})
	c.has(c.call("get_runtime_env", object{}), object{"status": "success", "variables": object{"MODE": "production"}})
	said := c.call("execute_code", object{"code": "x = 1\n1/0", "filename": "broken"})
	c.has(said, object{"status": "error"})
	if why, _ := said["error"].(string); !strings.Contains(why, `File "`+said["file_path"].(string)+`", line 2, in <module>`) || !strings.HasSuffix(why, "ZeroDivisionError: division by zero\n") {
		t.Errorf("error: %s", why)
	}
	c.has(c.call("execute_code", object{"code": "import sys; print('odd', file=sys.stderr)"}), object{"status": "error", "output": "odd\n"})
	for _, path := range []string{"/etc/passwd", "../x.py", dir + "/../x.py"} {
		c.has(c.call("read_code_file", object{"file_path": path}), object{"status": "error", "file_path": path})
		c.has(c.call("append_to_code_file", object{"file_path": path, "content": "x"}), object{"status": "error", "file_path": path})
	}
	c.has(c.call("execute_code_file", object{"file_path": dir + "/none.py"}), object{"status": "error"})
}

// TestCodeExecutorLoop develops by tests, as a model does: a test that fails, code, more code until it passes, and
// commands of git in a repository of the host's user.
func TestCodeExecutorLoop(t *testing.T) {
	t.Parallel()
	dir, cfg := storage(t)
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=ann", "-c", "user.email=ann@corp.example", "commit", "-q", "--allow-empty", "-m", "begin"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	c := connect(t, open(t, cfg, gateway.Options{}), config.CompatCodeExecutor)
	code := c.call("initialize_code_file", object{"content": "def add(a, b):\n    return a - b\n", "filename": "calculator"})["file_path"].(string)
	module := strings.TrimSuffix(filepath.Base(code), ".py")
	test := c.call("initialize_code_file", object{"filename": "test_calculator", "content": "import unittest\nfrom " + module + " import *\n\nclass Calculator(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"})["file_path"].(string)
	c.call("append_to_code_file", object{"file_path": test, "content": "\nif __name__ == '__main__':\n    unittest.main()\n"})
	red := c.call("execute_code_file", object{"file_path": test})
	c.has(red, object{"status": "error"})
	if why, _ := red["error"].(string); !strings.Contains(why, "FAIL: test_add") || !strings.Contains(why, "-1 != 5") {
		t.Errorf("red: %v", red)
	}
	c.call("append_to_code_file", object{"file_path": code, "content": "\ndef add(a, b):\n    return a + b\n"})
	if green := c.call("execute_code_file", object{"file_path": test}); !strings.Contains(green["output"].(string), "OK") {
		t.Errorf("green: %v", green)
	}
	git := c.call("execute_code", object{"filename": "git_step", "code": "import subprocess\n" +
		"for step in (['status', '--short'], ['log', '--oneline', '--format=%s']):\n    print(subprocess.run(['git', *step], cwd='" + dir + "', capture_output=True, text=True, check=True).stdout)"})
	c.has(git, object{"status": "success"})
	for _, want := range []string{"?? " + filepath.Base(code), "?? " + filepath.Base(test), "begin"} {
		if out, _ := git["output"].(string); !strings.Contains(out, want) {
			t.Errorf("git says %v, without %q", git, want)
		}
	}
}

// TestCodeExecutorCommits makes a repository in a workspace that is no folder of the host, and commits to it.
func TestCodeExecutorCommits(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Compat = config.CompatCodeExecutor
	c := connect(t, open(t, cfg, gateway.Options{}), config.CompatCodeExecutor)
	steps := func(commands ...string) object {
		code := "import subprocess\nfor command in [\"" + strings.Join(commands, `", "`) + "\"]:\n    subprocess.run(command, shell=True, check=True)"
		return c.call("execute_code", object{"code": code, "filename": "git_steps"})
	}
	made := c.call("initialize_code_file", object{"content": "print(42)\n", "filename": "answer"})
	if path, _ := made["file_path"].(string); !strings.HasPrefix(path, "/workspace/answer_") {
		t.Errorf("%v", made)
	}
	c.has(steps("git init -q", "git add answer_*.py", "git commit -q -m first"), object{"status": "success", "output": ""})
	c.has(steps("git log --format=%s"), object{"status": "success", "output": "first\n"})
}
