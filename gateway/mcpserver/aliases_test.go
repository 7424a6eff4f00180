package mcpserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// everything returns a gateway and options that show every tool there is.
func everything(t *testing.T) (*gateway.Gateway, *mcpserver.Options) {
	t.Helper()
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{upstream("meter", newMeter(t).url, "Counts")}
	cfg.Environments = map[string]config.Environment{"science": {Description: "for numbers"}}
	g, err := gateway.Open(withRunsc(t, &cfg), &gateway.Options{DataDir: t.TempDir(), CacheDir: t.TempDir(), Snapshots: testutil.Snapshots()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g, &mcpserver.Options{
		Environments: cfg.Environments, Packages: g.Environments, Catalog: g.Service(), Choices: g.Environments, Stats: g.Service(), Files: g.Workspaces, Skills: g.Service(), Privacy: g.Privacy, Profiles: config.AllProfiles(),
	}
}

// TestOtherServersCalls makes the calls that mcp_code_executor and code-execution-mcp document,
// as their users know them, one after the other.
func TestOtherServersCalls(t *testing.T) {
	t.Parallel()
	g, opts := everything(t)
	client := connectWith(t, g.Service(), opts)
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
		{"execute_code", m{"code": "1", "filename": "../broken"}, "invalid file name", true},
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
		{"search_tools", m{"query": "count", "server": "meter", "detail_level": "description"}, "meter.tick: Count up and say how far", false},
		{"search_tools", m{"query": "count server:meter", "detail": "name"}, "meter.tick", false},
		{"search_tools", m{"query": "count server:none"}, "tick", false},
		{"search_tools", m{"query": "count", "detail_level": "everything"}, "use names, summary, signature or full", true},
		{"get_tool_definition", m{"tool_name": "tick", "server": "meter", "detail_level": "full"}, "Count up and say how far.", false},
		{"get_tool_definition", m{"tool_name": "tick", "category": "meter"}, "Count up and say how far.", false},
		{"list_tool_categories", m{}, "meter (1 tool): Counts", false},
		{"write_workspace_file", m{"filename": "data/rows.json", "content": "[1, 2]"}, "data/rows.json", false},
		{"read_workspace_file", m{"filename": "data/rows.json"}, "[1, 2]", false},
		{"list_workspace_files", m{"subpath": "data"}, "rows.json", false},
		{"list_workspace_files", m{"subpath": "."}, "my_script.py", false},
		{"save_skill", m{
			"name": "filter_active_users", "description": "Filter list to only active users",
			"code": "def filter_active(data): return [u for u in data if u['status'] == 'active']",
		}, "filter", false},
		{"load_skill", m{"name": "filter_active_users"}, "def filter_active(data)", false},
		{"list_skills", m{}, "Filter list to only active users", false},
		{"sanitize_pii", m{"text": "mail ann@corp.example"}, "mail [EMAIL_1]", false},
		{"restore_pii", m{"text": "mail [EMAIL_1]"}, "the settings keep personal data from models", true},
		{"get_execution_stats", m{}, "4 programs since", false},
	} {
		got, failed := callText(t, client, test.tool, test.args)
		if failed != test.fail || !strings.Contains(got, test.want) {
			t.Errorf("%s(%v): error %v\n%s", test.tool, test.args, failed, got)
		}
		if len(got) > 600 || strings.HasPrefix(got, "{") {
			t.Errorf("%s: not short text: %s", test.tool, got)
		}
	}
}

// callText returns all text of a result, and whether it is an error.
func callText(t *testing.T, client *mcp.ClientSession, name string, args any) (said string, failed bool) {
	t.Helper()
	result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			said += text.Text + "\n"
		}
	}
	return strings.TrimSuffix(said, "\n"), result.IsError
}

// TestEachOther: what one session of one principal did shows in no answer to another.
func TestEachOther(t *testing.T) {
	t.Parallel()
	g, opts := everything(t)
	settings := config.HTTP{Body: config.MiB, Grace: time.Second, Tokens: config.Secrets{"ann": "s3cret-of-ann", "ben": "s3cret-of-ben"}}
	url := serve(t, newDirectOn(t, g.Service(), false), &siteOptions{Settings: settings, Tools: mcpserver.New(g.Service(), opts)}) + "/mcp"
	ask := func(who, session, name, args string) string {
		t.Helper()
		_, body := request(t, "POST", url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`}}`,
			"Authorization: Bearer s3cret-of-"+who, "Mcp-Session-Id: "+session)
		return body
	}
	begin := func(who string) string {
		head, _ := request(t, "POST", url, initializeBody, "Authorization: Bearer s3cret-of-"+who)
		return head.Header.Get("Mcp-Session-Id")
	}
	first, second, ben := begin("ann"), begin("ann"), begin("ben")
	for _, call := range [][2]string{
		{"configure_environment", `{"environment":"science"}`},
		{"write_workspace_file", `{"filename":"mine.txt","content":"of ann"}`},
		{"save_skill", `{"name":"annual","code":"def annual(): return 1","description":"a skill of ann"}`},
		{"execute_code", `{"code":"print(6 * 7)"}`},
	} {
		if said := ask("ann", first, call[0], call[1]); !strings.Contains(said, `"result"`) || strings.Contains(said, `"isError":true`) {
			t.Fatalf("%s: %s", call[0], said)
		}
	}
	for _, test := range []struct{ tool, args, own, session, others string }{
		{"get_environment_config", `{}`, "environment: science", "environment: default", "environment: default"},
		{"get_execution_stats", `{}`, "1 program since", "no programs yet", "no programs yet"},
		{"list_workspace_files", `{}`, "mine.txt", "mine.txt", "(0 files"},
		{"read_workspace_file", `{"filename":"mine.txt"}`, "of ann", "of ann", "there is no"},
		{"list_skills", `{}`, "a skill of ann", "a skill of ann", "No skills yet"},
		{"load_skill", `{"name":"annual"}`, "def annual", "def annual", "no skill"},
		{"search_tools", `{"query":"annual"}`, "annual", "annual", "No tool"},
	} {
		for i, who := range []struct{ name, session, want string }{{"ann", first, test.own}, {"ann", second, test.session}, {"ben", ben, test.others}} {
			if said := ask(who.name, who.session, test.tool, test.args); !strings.Contains(said, who.want) {
				t.Errorf("%s for %s, %d: no %q in %s", test.tool, who.name, i, who.want, said)
			}
		}
	}
	if said := ask("ben", first, "get_execution_stats", `{}`); strings.Contains(said, "programs since") {
		t.Errorf("with the session of ann: %s", said)
	}
}

// TestHiddenNames: what only other servers' users write is in no definition.
func TestHiddenNames(t *testing.T) {
	t.Parallel()
	g, opts := everything(t)
	list, err := connectWith(t, g.Service(), opts).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := definitions(t, connectWith(t, g.Service(), opts))
	for _, hidden := range []string{"context_vars", "timeout_seconds", "memory_mb", "detail_level", "conda_name", "venv_path", "category\""} {
		if strings.Contains(all, hidden) {
			t.Errorf("%s is shown", hidden)
		}
	}
	if len(list.Tools) < 17 {
		t.Errorf("%d tools", len(list.Tools))
	}
}
