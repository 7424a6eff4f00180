package mcpserver_test

import (
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// everything returns a gateway and options that show every tool there is.
func everything(t *testing.T) (*gateway.Gateway, *mcpserver.Options) {
	t.Helper()
	cfg := config.Default()
	cfg.Upstreams, cfg.Sandbox.Runsc = []config.Upstream{upstream("meter", newMeter(t).url, "Counts")}, testutil.Runsc(t)
	cfg.Environments = map[string]config.Environment{"science": {Description: "for numbers"}}
	g, err := gateway.Open(&cfg, &gateway.Options{DataDir: t.TempDir(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, &mcpserver.Options{
		Environments: cfg.Environments, Packages: g, Catalog: g, Choices: g, Stats: g, Files: g, Profiles: config.AllProfiles(),
	}
}

// TestOtherServersCalls makes the calls that mcp_code_executor and code-execution-mcp document,
// as their users know them, one after the other.
func TestOtherServersCalls(t *testing.T) {
	t.Parallel()
	g, opts := everything(t)
	client := connectWith(t, g, opts)
	type m = map[string]any
	for _, test := range []struct {
		tool string
		args m
		want string
		fail bool
	}{
		// mcp_code_executor
		{"execute_code", m{"code": "import math\nprint(math.pi)", "filename": "matrix_gen"}, "3.14159", false},
		{"read_code_file", m{"file_path": "/workspace/matrix_gen.py"}, "print(math.pi)", false},
		{"execute_code", m{"code": "1/0", "filename": "broken"}, "ZeroDivisionError", true},
		{"execute_code", m{"code": "1", "filename": "../broken"}, "no file can be called", true},
		{"initialize_code_file", m{"content": "def main():\n    print('Hello, world!')", "filename": "my_script"}, "my_script.py", false},
		{"append_to_code_file", m{"file_path": "my_script.py", "content": "\nif __name__ == '__main__':\n    main()\n"}, "my_script.py", false},
		{"execute_code_file", m{"file_path": "my_script.py"}, "Hello, world!", false},
		{"read_code_file", m{"file_path": "my_script.py"}, "def main():", false},
		{"install_dependencies", m{"packages": []string{"numpy", "pandas", "matplotlib"}}, "packages cannot be installed in environment default (the operator decides that)", true},
		{"check_installed_packages", m{"packages": []string{"numpy", "pandas", "non_existent_package"}}, "numpy: not installed\npandas: not installed\nnon_existent_package: not installed", false},
		{"configure_environment", m{"type": "conda", "conda_name": "new_env_name"}, "there are: default, science (for numbers)", true},
		{"configure_environment", m{"type": "venv", "venv_path": "/path/to/venv"}, "there are: default, science (for numbers)", true},
		{"configure_environment", m{"type": "conda"}, "which environment?", true},
		{"configure_environment", m{"type": "conda", "conda_name": "science"}, "Programs run in environment science (for numbers) from now on", false},
		{"get_environment_config", m{}, "environment: science (for numbers)\nPython 3.", false},
		// code-execution-mcp
		{"execute_code", m{"code": "sum(n) * k", "context_vars": m{"n": []int{1, 2, 3}, "k": 7}, "timeout_seconds": 30, "memory_mb": 500}, "42", false},
		{"execute_code", m{"code": "1", "memory_mb": 5000}, "a program can have at most 512MiB of memory", true},
		{"execute_code", m{"code": "1", "timeout": 3, "timeout_seconds": 30}, "timeout and timeout_seconds are the same", true},
		{"execute_code", m{"code": "1", "context_vars": "a"}, "context_vars must be an object", true},
		{"search_tools", m{"query": "count", "category": "meter", "detail_level": "full"}, "Count up and say how far.", false},
		{"get_tool_definition", m{"tool_name": "tick", "category": "meter"}, "Count up and say how far.", false},
		{"list_tool_categories", m{}, "meter (1 tool): Counts", false},
		{"write_workspace_file", m{"filename": "data/rows.json", "content": "[1, 2]"}, "data/rows.json", false},
		{"read_workspace_file", m{"filename": "data/rows.json"}, "[1, 2]", false},
		{"list_workspace_files", m{"subpath": "data"}, "rows.json", false},
		{"list_workspace_files", m{"subpath": "."}, "my_script.py", false},
		{"get_execution_stats", m{}, "4 programs since", false},
	} {
		got, failed := call(t, client, test.tool, test.args)
		if failed != test.fail || !strings.Contains(got, test.want) {
			t.Errorf("%s(%v): error %v\n%s", test.tool, test.args, failed, got)
		}
		if len(got) > 600 || strings.HasPrefix(got, "{") {
			t.Errorf("%s: not short text: %s", test.tool, got)
		}
	}
}

// TestHiddenNames: what only other servers' users write is in no definition.
func TestHiddenNames(t *testing.T) {
	t.Parallel()
	g, opts := everything(t)
	list, err := connectWith(t, g, opts).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := definitions(t, connectWith(t, g, opts))
	for _, hidden := range []string{"context_vars", "timeout_seconds", "memory_mb", "detail_level", "conda_name", "venv_path", "category\""} {
		if strings.Contains(all, hidden) {
			t.Errorf("%s is shown", hidden)
		}
	}
	if len(list.Tools) < 17 {
		t.Errorf("%d tools", len(list.Tools))
	}
}
