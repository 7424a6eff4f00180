package compat_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway"
	"sallyport/internal/config"
)

// openCodeExecution returns a client of code-execution-mcp, with tools in two categories.
func openCodeExecution(t *testing.T) client {
	t.Helper()
	cfg := config.Default()
	cfg.Compat = config.CompatCodeExecution
	cfg.Privacy.RestoreTo = []string{config.RestoreToModel}
	cfg.Upstreams = []config.Upstream{
		upstream(t, "security", fakeTool{"web_vuln_scanner", "Scan a web site for every known vulnerability.", `{"type":"object","properties":{"url":{"type":"string"}}}`, `[{"severity":"high"}]`}),
		upstream(t, "memory", fakeTool{"enhanced_memory", "Remember a fact.", "", "kept"}),
	}
	return connect(t, open(t, cfg, gateway.Options{}), config.CompatCodeExecution)
}

// TestCodeExecutionTools: clients see the tools of that server, and no others, with its parameters.
func TestCodeExecutionTools(t *testing.T) {
	t.Parallel()
	list, err := openCodeExecution(t).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"execute_code": "code context_vars memory_mb timeout_seconds", "search_tools": "category detail_level query", "get_tool_definition": "category tool_name",
		"list_tool_categories": "", "save_skill": "code description name", "load_skill": "name", "list_skills": "", "sanitize_pii": "text", "restore_pii": "text",
		"write_workspace_file": "content filename", "read_workspace_file": "filename", "list_workspace_files": "subpath", "get_execution_stats": "",
	}
	for _, def := range list.Tools {
		var names []string
		schema, _ := def.InputSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for name := range properties {
			names = append(names, name)
		}
		slices.Sort(names)
		if got, ok := want[def.Name], strings.Join(names, " "); got != ok {
			t.Errorf("%s has %q, want %q", def.Name, ok, got)
		}
		delete(want, def.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestCodeExecutionExamples runs the examples of that server's README, in its order and as they are there.
func TestCodeExecutionExamples(t *testing.T) {
	t.Parallel()
	c := openCodeExecution(t)
	c.has(c.call("write_workspace_file", object{"filename": "large_dataset.json", "content": `[{"status":"active","id":1},{"status":"gone","id":2},{"status":"active","id":3}]`}),
		object{"success": true, "message": "Written 80 bytes to large_dataset.json"})
	// Efficient Data Processing
	said := c.call("execute_code", object{"code": `
data = json.loads(read_file("large_dataset.json"))
filtered = [d for d in data if d['status'] == 'active']
result = {
    'total': len(data),
    'active': len(filtered),
    'sample': filtered[:5]
}
`})
	c.has(said, object{"success": true, "output": []string{}, "result": object{"total": 3, "active": 2, "sample": []object{{"id": 1, "status": "active"}, {"id": 3, "status": "active"}}}})
	if _, ok := said["execution_time_ms"].(float64); !ok {
		t.Errorf("no time: %v", said)
	}
	// Progressive Tool Discovery
	c.has(c.call("search_tools", object{"query": "vulnerability", "category": "security", "detail_level": "summary"}), object{
		"query": "vulnerability", "category": "security", "detail_level": "summary", "count": 1,
		"tools": []object{{"name": "web_vuln_scanner", "category": "security", "mcp_server": "security", "description": "Scan a web site for every known vulnerability."}},
	})
	found := c.call("get_tool_definition", object{"tool_name": "web_vuln_scanner", "category": "security"})
	c.has(found, object{"category": "security", "mcp_server": "security", "use_cases": []string{}})
	if functions, ok := found["functions"].([]any); !ok || len(functions) != 1 || !strings.Contains(functions[0].(string), "web_vuln_scanner(*, url: str") {
		t.Errorf("functions: %v", found)
	}
	// Privacy-Preserving Operations
	clean := c.call("sanitize_pii", object{"text": "Contact john@example.com at 555-123-4567"})
	hidden, _ := clean["sanitized_text"].(string)
	tokens := regexp.MustCompile(`^Contact (\[EMAIL_\w+\]) at (\[PHONE_\w+\])$`).FindStringSubmatch(hidden)
	if tokens == nil {
		t.Fatalf("sanitized: %v", clean)
	}
	c.has(clean, object{"pii_found": 2, "pii_types": []string{"EMAIL", "PHONE"}})
	c.has(c.call("restore_pii", object{"text": tokens[1]}), object{"restored_text": "john@example.com"})
	// Building Skills
	c.has(c.call("save_skill", object{
		"name": "filter_high_risk", "code": "def filter_high_risk(vulns): return [v for v in vulns if v['severity'] in ['high', 'critical']]",
		"description": "Filter vulnerabilities to high/critical only",
	}), object{"success": true, "message": "Skill 'filter_high_risk' saved successfully"})
	c.call("write_workspace_file", object{"filename": "scan_results.json", "content": `[{"severity":"high"},{"severity":"low"}]`})
	c.has(c.call("execute_code", object{"code": `
skill = load_skill("filter_high_risk")
exec(skill)
vulns = json.loads(read_file("scan_results.json"))
result = filter_high_risk(vulns)
`}), object{"success": true, "result": []object{{"severity": "high"}}})
	loaded := c.call("load_skill", object{"name": "filter_high_risk"})
	c.has(loaded, object{"name": "filter_high_risk", "code": "def filter_high_risk(vulns): return [v for v in vulns if v['severity'] in ['high', 'critical']]"})
	c.has(loaded["metadata"].(object), object{"name": "filter_high_risk", "description": "Filter vulnerabilities to high/critical only"})
}

// TestCodeExecutionNames: a program has all names of that server without imports, and they do what they do there.
func TestCodeExecutionNames(t *testing.T) {
	t.Parallel()
	c := openCodeExecution(t)
	for _, test := range []struct {
		code string
		want any
	}{
		{`result = [json.dumps(1), re.sub("a", "b", "a"), math.pi > 3, statistics.mean([1, 3]), collections.Counter("aab")["a"]]`, []any{"1", "b", true, 2, 2}},
		{`result = [datetime(2026, 1, 2).isoformat(), str(date(2026, 1, 2) + timedelta(days=1))]`, []any{"2026-01-02T00:00:00", "2026-01-03"}},
		{`result = [write_file("a/b.txt", "12"), read_file("a/b.txt"), list_files(), list_files("a"), delete_file("a/b.txt"), list_files("."), workspace]`,
			[]any{"Written 2 bytes to a/b.txt", "12", []any{"a/b.txt"}, []any{"a/b.txt"}, "Deleted a/b.txt", []any{}, "/workspace"}},
		{`save_skill("double", "def double(x): return 2 * x"); exec(load_skill("double")); result = [double(4), [s["name"] for s in list_skills()]]`, []any{8, []any{"double"}}},
		{"hidden, tokens = tokenize_pii('a@b.example, 10.0.0.7, 555-123-4567, 123-45-6789')\nresult = ['@' in hidden, len(tokens), detokenize_pii(hidden), detokenize_pii(hidden, tokens)]",
			[]any{false, 4, "a@b.example, 10.0.0.7, 555-123-4567, 123-45-6789", "a@b.example, 10.0.0.7, 555-123-4567, 123-45-6789"}},
		{`result = restore_pii(sanitize_pii("call 555-123-4567"))`, "call 555-123-4567"},
		{`rows = [{"n": 1, "k": "a"}, {"n": 5, "k": "b"}]; result = [filter_by_field(rows, "k", "b"), summarize_list(rows, limit=1), aggregate_stats(rows), format_output({"a": 1}, max_chars=3)]`,
			[]any{[]any{object{"n": 5, "k": "b"}}, object{"count": 2, "sample": []any{object{"n": 1, "k": "a"}}}, object{"count": 2, "n_sum": 6, "n_avg": 3, "n_min": 1, "n_max": 5}, "{\n "}},
		{`result = datetime(2026, 1, 2)`, "2026-01-02 00:00:00"}, // as json.dumps(default=str) writes it
		{`from servers.memory import enhanced_memory; result = enhanced_memory()`, "kept"},
		{`x = 1; x`, nil}, // only result counts
	} {
		c.has(c.call("execute_code", object{"code": test.code}), object{"success": true, "result": test.want})
	}
	c.has(c.call("execute_code", object{"code": "result = sum(n) * k", "context_vars": object{"n": []int{1, 2, 3}, "k": 7}, "timeout_seconds": 30, "memory_mb": 500}), object{"success": true, "result": 42})
	c.has(c.call("execute_code", object{"code": "print('a', 'b')\nprint(3)"}), object{"success": true, "result": nil, "output": []string{"a b", "3"}})
}

// TestCodeExecutionFailures: what fails is told as that server tells it.
func TestCodeExecutionFailures(t *testing.T) {
	t.Parallel()
	c := openCodeExecution(t)
	broken := c.call("execute_code", object{"code": "print('before')\nx = {}\nx['gone']"})
	c.has(broken, object{"success": false, "error": "'gone'", "output": []string{"before"}})
	if trace, _ := broken["traceback"].(string); !strings.HasPrefix(trace, "Traceback (most recent call last):\n  File \"<sandbox>\", line 3, in <module>\n    x['gone']\nKeyError: 'gone'") {
		t.Errorf("traceback: %s", trace)
	}
	c.has(c.call("execute_code", object{"code": "while True: pass", "timeout_seconds": 1}), object{"success": false, "error": "Execution timed out after 1 seconds"})
	c.has(c.call("execute_code", object{"code": "read_file('none.txt')"}), object{"success": false, "error": "File not found: none.txt"})
	c.has(c.call("execute_code", object{"code": "read_file('../etc/passwd')"}), object{"success": false, "error": "Access denied: path outside workspace"})
	c.has(c.call("execute_code", object{"code": "load_skill('none')"}), object{"success": false, "error": "Skill not found: none"})
	c.has(c.call("read_workspace_file", object{"filename": "../etc/passwd"}), object{"success": false, "error": "Access denied: path outside workspace"})
	c.has(c.call("read_workspace_file", object{"filename": "none.txt"}), object{"success": false})
	c.has(c.call("list_workspace_files", object{}), object{"success": true, "path": ".", "files": []string{}, "count": 0})
	c.has(c.call("get_tool_definition", object{"tool_name": "none"}), object{"error": "Tool not found: none"})
	c.has(c.call("search_tools", object{"query": "scan", "category": "none"}), object{"count": 0, "tools": []string{}})
	c.has(c.call("load_skill", object{"name": "none"}), object{"error": "Skill not found: none"})
	if text, failed := c.text("execute_code", object{"kode": "1"}); !failed || !strings.Contains(text, "kode") {
		t.Errorf("an unknown parameter: %v %s", failed, text)
	}
}

// TestCodeExecutionRest makes the calls that need no program.
func TestCodeExecutionRest(t *testing.T) {
	t.Parallel()
	c := openCodeExecution(t)
	c.has(c.call("list_tool_categories", object{}), object{
		"categories": object{"security": object{"description": "the tools of security", "tool_count": 1}, "memory": object{"description": "the tools of memory", "tool_count": 1}}, "total_tools": 2,
	})
	c.has(c.call("search_tools", object{"query": "scan a web site", "detail_level": "full"}), object{"category": nil, "detail_level": "full"})
	c.call("write_workspace_file", object{"filename": "data/rows.json", "content": "[1, 2]"})
	c.has(c.call("read_workspace_file", object{"filename": "data/rows.json"}), object{"success": true, "filename": "data/rows.json", "content": "[1, 2]", "size": 6})
	c.has(c.call("list_workspace_files", object{"subpath": "data"}), object{"success": true, "path": "data", "files": []string{"data/rows.json"}, "count": 1})
	c.call("save_skill", object{"name": "limit", "code": "LIMIT = 10"})
	skills := c.call("list_skills", object{})
	c.has(skills, object{"count": 1})
	c.has(skills["skills"].([]any)[0].(object), object{"name": "limit"})
	stats := c.call("get_execution_stats", object{})
	c.has(stats["workspace"].(object), object{"path": "/workspace", "file_count": 1})
	c.has(stats["limits"].(object), object{"default_timeout_seconds": 30, "default_memory_mb": 512})
	c.has(stats["tool_registry"].(object), object{"total_tools": 2})
}
