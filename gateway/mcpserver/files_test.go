package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/tokens"
)

// filesClient is a client of a gateway that keeps files in data, with the tools of profile files.
func filesClient(t *testing.T, data string, cfg config.Config) *mcp.ClientSession {
	t.Helper()
	g, err := gateway.Open(&cfg, &gateway.Options{DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return connectWith(t, g.Service(), &mcpserver.Options{Profiles: config.Profiles{config.ProfileFiles}, Files: g.Workspaces, Workspaces: cfg.Workspaces})
}

// toolText is what a tool answers; errors begin with "error: ".
func toolText(t *testing.T, client *mcp.ClientSession, name, args string) string {
	t.Helper()
	result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s %.200s: %v", name, args, err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		return "error: " + text
	}
	return text
}

// TestFileTools: a file grows step by step; each answer is what a model needs for the next one.
func TestFileTools(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	client := filesClient(t, data, config.Default())
	long := strings.Repeat("0123456789abcde\n", 3000)
	for _, step := range []struct{ tool, args, want string }{
		{"list_workspace_files", `{}`, "(0 files, 0 B of 256 MiB)"},
		{"initialize_code_file", `{"content": "a = 1\nb = 2", "filename": "my_script"}`, "made my_script.py: 2 lines, 11 bytes"},
		{"initialize_code_file", `{"content": "", "filename": "my_script"}`, "error: my_script.py is there already, 2 lines (overwrite_file replaces it, append_to_code_file adds to it)"},
		{"append_to_code_file", `{"file_path": "my_script", "content": "print(a + b)\n"}`, "added to my_script.py: 3 lines, 25 bytes"},
		{"read_code_file", `{"file_path": "/workspace/my_script.py"}`, "a = 1\nb = 2\nprint(a + b)"},
		{"read_code_file", `{"file_path": "my_script.py", "start_line": 2, "end_line": 2}`, "[lines 2-2 of 3]\nb = 2"},
		{"read_code_file", `{"file_path": "my_script.py", "start_line": "4"}`, "error: my_script.py has 3 lines only"},
		{"overwrite_file", `{"file_path": "my_script.py", "old_text": "b = 2", "new_text": "b = 3"}`, "edited my_script.py: 3 lines, 25 bytes"},
		{"overwrite_file", `{"file_path": "my_script.py", "old_text": "a", "new_text": "c"}`, "error: old_text occurs 2 times in my_script.py, at lines 1, 3 (give more of the text around it)"},
		{"overwrite_file", `{"file_path": "my_script.py", "old_text": "  b = 3 ", "new_text": ""}`, "error: old_text does not occur in my_script.py (its first line is like line 2; white space counts: read the file again)"},
		{"overwrite_file", `{"file_path": "my_script.py", "old_text": "", "new_text": ""}`, "error: old_text is empty (give the text to be replaced, or content for the whole file)"},
		{"overwrite_file", `{"file_path": "my_script.py", "old_text": "x"}`, "error: give content, or old_text and new_text"},
		{"overwrite_file", `{"file_path": "my_script.py", "content": ""}`, "wrote my_script.py: 0 lines, 0 bytes"},
		{"read_workspace_file", `{"filename": "my_script.py"}`, "(empty)"},
		{"write_workspace_file", `{"filename": "data/long.txt", "content": ` + quote(long) + `}`, "wrote data/long.txt: 3000 lines, 48000 bytes"},
		{"read_workspace_file", `{"filename": "data/long.txt"}`, "[lines 1-1024 of 3000]\n" + strings.TrimSpace(long[:16*1024]) + "\n[go on with start_line=1025]"},
		{"write_workspace_file", `{"filename": "one.txt", "content": ` + quote(strings.Repeat("x", 20_000)) + `}`, "wrote one.txt: 1 line, 20000 bytes"},
		{"read_workspace_file", `{"filename": "one.txt"}`, strings.Repeat("x", 16<<10) + "\n[line 1 is longer; read it in a program]"},
		{"write_workspace_file", `{"filename": "b.bin", "content": "a\u0000b"}`, "wrote b.bin: 1 line, 3 bytes"},
		{"read_workspace_file", `{"filename": "b.bin"}`, "b.bin is not text: 3 B; read it in a program"},
		{"write_workspace_file", `{"filename": "crlf.txt", "content": "a\r\nb\r\nc\u202e"}`, "wrote crlf.txt: 3 lines, 10 bytes"},
		{"read_workspace_file", `{"filename": "crlf.txt"}`, "a\nb\nc\n[invisible characters are left out]"},
		{"overwrite_file", `{"file_path": "crlf.txt", "old_text": "a\nb", "new_text": "1\n2"}`, "edited crlf.txt: 3 lines, 10 bytes"},
		{"read_code_file", `{"file_path": "long.txt"}`, "error: there is no file long.txt (did you mean data/long.txt?)"},
		{"read_code_file", `{"file_path": "data"}`, "error: data: a folder"},
		{"append_to_code_file", `{"file_path": "no.py", "content": "1"}`, "error: there is no file no.py (list_workspace_files shows what there is)"},
		{"append_to_code_file", `{"file_path": "my_script.py"}`, "error: content is missing"},
		{"list_workspace_files", `{}`, "b.bin 3 B\ncrlf.txt 10 B\ndata/long.txt 46 KiB\nmy_script.py 0 B\none.txt 19 KiB\n(5 files, 66 KiB of 256 MiB)"},
		{"list_workspace_files", `{"subpath": "/workspace/data/"}`, "data/long.txt 46 KiB\n(1 file, 46 KiB of 256 MiB)"},
		{"list_workspace_files", `{"subpath": "../.."}`, "b.bin 3 B\ncrlf.txt 10 B\ndata/long.txt 46 KiB\nmy_script.py 0 B\none.txt 19 KiB\n(5 files, 66 KiB of 256 MiB)"},
		{"list_workspace_files", `{"subpath": "dat"}`, "error: there is no file dat (list_workspace_files shows what there is)"},
		{"list_workspace_files", `{"workspace": "other"}`, "(0 files, 0 B of 256 MiB)"},
		{"execute_code_file", `{"file_path": "one.txt"}`, "error: one.txt is not a program: use .py, .ts, .mts, .js or .mjs"},
		{"execute_code_file", `{"file_path": "my_script"}`, "error: my_script.py is empty, or has more than 1 MiB"},
	} {
		if got := toolText(t, client, step.tool, step.args); got != step.want {
			t.Errorf("%s %.200s\ngot  %.300s\nwant %.300s", step.tool, step.args, got, step.want)
		}
	}
	if got := toolText(t, client, "initialize_code_file", `{"content": "1\n"}`); !strings.HasPrefix(got, "made code_") || !strings.HasSuffix(got, ".py: 1 line, 2 bytes") {
		t.Errorf("a file without a name: %s", got)
	}
}

func quote(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// TestFileToolsAreSafe: no name that a model can pass leads out of its workspace, or into something odd.
func TestFileToolsAreSafe(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	client := filesClient(t, data, config.Default())
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := toolText(t, client, "write_workspace_file", `{"filename": "kept.txt", "content": "kept"}`); !strings.HasPrefix(got, "wrote") {
		t.Fatal(got)
	}
	home := filepath.Join(data, "workspaces", "+e3b0c44298fc1c149afbf4c8996fb924", "default")
	for name, target := range map[string]string{"link": outside, "link.py": outside, "link.x": outside, "folder": filepath.Dir(outside)} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{
		"..", "../x", "a/../../x", "/etc/passwd", "/workspace/../x", "a\x00b", ".", "a//b", "a/", `..\x`, `C:\x`, "a\u202etxt.py", "a\u200b.py", "a\u2066b", "\ufeffa",
		".sallyport-x/y", "link", "link.x/y", "folder/outside", strings.Repeat("a", 10_000), strings.Repeat("a/", 100) + "b", strings.Repeat("é", 200), "//etc/passwd", "\u2028", "a\nb", "\x1b[2Ja",
	}
	for _, name := range names {
		for tool, args := range map[string]string{
			"initialize_code_file": `{"filename": %[1]s, "content": "canary"}`, "append_to_code_file": `{"file_path": %[1]s, "content": "canary"}`,
			"overwrite_file": `{"file_path": %[1]s, "content": "canary"}`, "read_code_file": `{"file_path": %[1]s}`, "execute_code_file": `{"file_path": %[1]s}`,
			"read_workspace_file": `{"filename": %[1]s}`, "write_workspace_file": `{"filename": %[1]s, "content": "canary"}`,
		} {
			got := toolText(t, client, tool, fmt.Sprintf(args, quote(name)))
			if !strings.HasPrefix(got, "error: ") || len(got) > 400 || strings.Contains(got, "canary") || strings.Contains(got, data) || strings.ContainsAny(got, "\x1b\x00\u202e") {
				t.Errorf("%s %.40q: %.300s", tool, name, got)
			}
		}
		for _, tool := range []string{"list_workspace_files", "read_workspace_file"} { // as a workspace
			args := fmt.Sprintf(`{"filename": "kept.txt", "workspace": %s}`, quote(name))
			if tool == "list_workspace_files" {
				args = fmt.Sprintf(`{"workspace": %s}`, quote(name))
			}
			if got := toolText(t, client, tool, args); name != "link" && !strings.HasPrefix(got, "error: ") {
				t.Errorf("workspace %.40q: %.300s", name, got)
			}
		}
	}
	// These are odd, but files like others here.
	for _, name := range []string{"CON", "nul.py", "a.", "e\u0301.py", "é.py", "ａ.py"} {
		if got := toolText(t, client, "write_workspace_file", fmt.Sprintf(`{"filename": %s, "content": %s}`, quote(name), quote(name))); !strings.HasPrefix(got, "wrote") {
			t.Errorf("%q: %s", name, got)
		}
		if got := toolText(t, client, "read_workspace_file", fmt.Sprintf(`{"filename": %s}`, quote(name))); got != name {
			t.Errorf("%q: %s", name, got)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "canary" {
		t.Errorf("outside: %q, %v", text, err)
	}
}

// TestFileToolsAtOnce: what several calls add to one file at the same time is all there.
func TestFileToolsAtOnce(t *testing.T) {
	t.Parallel()
	client := filesClient(t, t.TempDir(), config.Default())
	toolText(t, client, "initialize_code_file", `{"filename": "a.txt", "content": ""}`)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			if got := toolText(t, client, "append_to_code_file", fmt.Sprintf(`{"file_path": "a.txt", "content": "line %d\n"}`, i)); !strings.HasPrefix(got, "added") {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if got := toolText(t, client, "read_code_file", `{"file_path": "a.txt"}`); strings.Count(got, "\n") != 4 {
		t.Errorf("not all there:\n%s", got)
	}
}

// TestFileToolsQuota: what does not fit is told, and what was there stays.
func TestFileToolsQuota(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Sandbox.Workspace, cfg.Sandbox.Inodes = 1000, 3
	client := filesClient(t, t.TempDir(), cfg)
	for _, step := range []struct{ args, want string }{
		{`{"filename": "a", "content": "` + strings.Repeat("a", 600) + `"}`, "wrote a: 1 line, 600 bytes"},
		{`{"filename": "b", "content": "` + strings.Repeat("b", 600) + `"}`, `error: not kept: "b" (the workspace is full)`},
		{`{"filename": "a", "content": "` + strings.Repeat("b", 1001) + `"}`, `error: not kept: "a" (the workspace is full)`},
		{`{"filename": "c/d", "content": ""}`, "wrote c/d: 0 lines, 0 bytes"},
		{`{"filename": "e", "content": ""}`, `error: not kept: "e" (the workspace is full)`},
	} {
		if got := toolText(t, client, "write_workspace_file", step.args); got != step.want {
			t.Errorf("%.40s: %s", step.args, got)
		}
	}
	if got := toolText(t, client, "read_workspace_file", `{"filename": "a"}`); got != strings.Repeat("a", 600) {
		t.Errorf("a is %s", got)
	}
}

// TestFileListing: of many files, folders are told with what they hold.
func TestFileListing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	home := filepath.Join(data, "workspaces", "+e3b0c44298fc1c149afbf4c8996fb924", "default")
	for i := range 300 {
		dir := filepath.Join(home, "src", fmt.Sprintf("p%d", i%3))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.py", i)), []byte("1234567890"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client := filesClient(t, data, config.Default())
	for args, want := range map[string]string{
		`{}`:                 "src/ 300 files, 3000 B\n(300 files, 3000 B of 256 MiB)",
		`{"subpath": "src"}`: "src/p0/ 100 files, 1000 B\nsrc/p1/ 100 files, 1000 B\nsrc/p2/ 100 files, 1000 B\n(300 files, 3000 B of 256 MiB)",
	} {
		if got := toolText(t, client, "list_workspace_files", args); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	if got := toolText(t, client, "list_workspace_files", `{"subpath": "src/p1"}`); strings.Count(got, "\n") != 100 {
		t.Errorf("a folder of 100: %s", got)
	}
}

// TestFileToolsTokens: what a client reads of them at every turn.
func TestFileToolsTokens(t *testing.T) {
	t.Parallel()
	client := filesClient(t, t.TempDir(), config.Default())
	list, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.O200k()
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, tool := range list.Tools {
		if tool.Name == "search_tools" || tool.Name == "execute_code" {
			continue
		}
		data, _ := json.Marshal(tool)
		n, err := counter.Count(string(data))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d tokens", tool.Name, n)
		all += n
	}
	if all > 620 {
		t.Errorf("%d tokens", all)
	}
}

// TestWorkspaceHeader: over HTTP a header names the workspace of a request that names none, for programs and files.
func TestWorkspaceHeader(t *testing.T) {
	t.Parallel()
	g, err := gateway.Open(new(config.Default()), &gateway.Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	tools := mcpserver.New(g.Service(), &mcpserver.Options{Profiles: config.Profiles{config.ProfileFiles}, Files: g.Workspaces})
	url := serve(t, newDirectOn(t, &callerRecorder{}, false), &siteOptions{Settings: config.HTTP{Body: config.MiB}, Tools: tools}) + "/mcp"
	resp, _ := request(t, "POST", url, initializeBody)
	session := "Mcp-Session-Id: " + resp.Header.Get("Mcp-Session-Id")
	for _, step := range []struct{ tool, args, header, want string }{
		{"write_workspace_file", `{"filename":"a","content":"1"}`, "one", "wrote a"},
		{"list_workspace_files", `{}`, "one", "a 1 B"},
		{"list_workspace_files", `{"workspace":"one"}`, "two", "a 1 B"},
		{"list_workspace_files", `{}`, "two", "(0 files"},
		{"list_workspace_files", `{}`, "../one", `invalid workspace name \"../one\" (use 1 to 64`},
		{"execute_code", `{"code":"1"}`, "../one", `invalid workspace name \"../one\" (use 1 to 64`},
	} {
		_, body := request(t, "POST", url, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+step.tool+`","arguments":`+step.args+`}}`, session, "Sallyport-Workspace: "+step.header)
		if !strings.Contains(body, step.want) {
			t.Errorf("%s %s in %s: %s", step.tool, step.args, step.header, body)
		}
	}
}
