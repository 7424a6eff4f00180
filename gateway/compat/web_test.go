package compat_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/compat"
	"sallyport/gateway/httpserver"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// site is a gateway behind HTTP, for the clients of code-executor.
type site struct {
	t     *testing.T
	url   string
	token string
}

// openSite serves a gateway with some upstreams, a real one among them.
func openSite(t *testing.T, settings config.HTTP) site {
	t.Helper()
	cfg := config.Default()
	cfg.Compat, settings.Body, settings.Grace = config.CompatHTTP, config.MiB, time.Second
	script := filepath.Join(testutil.Upstreams(t), "@modelcontextprotocol/server-filesystem/dist/index.js")
	cfg.Upstreams = []config.Upstream{
		{Name: "filesystem", ID: "filesystem", Command: "node", Args: []string{script, t.TempDir()}, Description: "files", Timeout: 20 * time.Second},
		upstream(t, "timescaledb",
			fakeTool{"execute_query", "Execute a SELECT query against TimescaleDB", `{"type":"object","required":["query"],"properties":{"query":{"type":"string"}}}`, `{"rows":[{"value":90},{"value":120},{"value":150}],"rowCount":3}`},
			fakeTool{"list_databases", "List all databases in the TimescaleDB instance", "", `["metrics","postgres"]`}),
		upstream(t, "minio", fakeTool{"list_buckets", "List all buckets", "", `["exports","logs"]`},
			fakeTool{"upload_object", "Upload an object", `{"type":"object","properties":{"bucket":{"type":"string"},"key":{"type":"string"},"content":{"type":"string"}}}`, "uploaded"}),
	}
	g := open(t, cfg, gateway.Options{ConnectWait: time.Minute})
	direct := mcpserver.NewDirect(g.Service(), nil)
	t.Cleanup(direct.Close)
	listener, err := httpserver.Listen(t.Context(), "127.0.0.1:0", settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httpserver.New(listener, &httpserver.Options{
		MCP: mcpserver.NewEndpoints(direct, &mcpserver.EndpointOptions{Body: settings.Body}), Settings: settings, Logger: testutil.Logger(t),
		Compat: compat.NewWeb(partsOf(g), g.Service(), "1.2.3"),
	})
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(ctx) })
	t.Cleanup(func() { stop(); work.Wait() })
	return site{t: t, url: "http://" + listener.Addr().String()}
}

// ask makes a request, and returns its status and the JSON object of its response.
func (s site) ask(method, path, body string) (int, object) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	var said object
	if err != nil || json.Unmarshal(data, &said) != nil {
		s.t.Fatalf("%s %s: %v %s", method, path, err, data)
	}
	return resp.StatusCode, said
}

// execute runs a program.
func (s site) execute(code string, more object) object {
	s.t.Helper()
	body := object{"code": code}
	maps.Copy(body, more)
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	status, said := s.ask("POST", "/execute", string(data))
	if _, ok := said["executionTime"].(float64); !ok || status != http.StatusOK {
		s.t.Errorf("%s: %d %v", code, status, said)
	}
	return said
}

// TestWeb makes the requests that the documents of code-executor show.
func TestWeb(t *testing.T) {
	t.Parallel()
	s := openSite(t, config.HTTP{})
	check := client{t: t}
	_, health := s.ask("GET", "/health", "")
	check.has(health, object{"status": "healthy", "version": "1.2.3", "servers": 3})
	byServer, _ := health["toolsByServer"].(object)
	check.has(byServer, object{"minio": []string{"list_buckets", "upload_object"}, "timescaledb": []string{"execute_query", "list_databases"}})
	if up, ok := health["uptime"].(float64); !ok || up <= 0 {
		t.Errorf("uptime: %v", health)
	}
	_, tools := s.ask("GET", "/tools", "")
	check.has(tools, object{"servers": 3, "totalTools": health["totalTools"], "tools": byServer})
	_, said := s.ask("POST", "/execute", `{"code":"console.log(2+2)"}`)
	check.has(said, object{"output": "4\n", "truncated": false, "metrics": object{"outputBytes": 2, "tokensEstimate": 1}, "error": nil})
	check.has(s.execute("console.log('Hello World')", object{"timeout": 60000, "language": "typescript"}), object{"output": "Hello World\n", "truncated": false})
	check.has(s.execute("print(2+2)", object{"language": "python"}), object{"output": "4\n"})

	_, found := s.ask("GET", "/tools/search?query=database&detail=name", "")
	check.has(found["results"].([]any)[0].(object), object{"server": "timescaledb", "name": "list_databases", "path": "/workspace/servers/timescaledb/list_databases.ts", "description": nil})
	_, found = s.ask("GET", "/tools/search?query=query&detail=description&server=timescaledb", "")
	first := found["results"].([]any)[0].(object)
	check.has(first, object{"server": "timescaledb", "name": "execute_query", "description": "Execute a SELECT query against TimescaleDB", "source": nil})
	if call, _ := first["signature"].(string); !strings.HasPrefix(call, "execute_query({query: string})") {
		t.Errorf("signature: %q", call)
	}
	_, found = s.ask("GET", "/tools/search?detail=full&server=minio", "")
	check.has(found, object{"count": 2})
	saved, _ := found["tokenSavings"].(object)
	check.has(saved, object{"currentLevel": "full", "current": saved["full"], "savingsVsFull": 0})
	if source, _ := found["results"].([]any)[0].(object)["source"].(string); !strings.Contains(source, "export function list_buckets") {
		t.Errorf("source: %s", source)
	}
	_, info := s.ask("GET", "/tools/info/timescaledb/execute_query?detail=description", "")
	check.has(info, object{"tokenEstimate": 11})
	check.has(info["tool"].(object), object{"description": "Execute a SELECT query against TimescaleDB"})
}

// TestWebPrograms runs the programs that the documents of code-executor show.
func TestWebPrograms(t *testing.T) {
	t.Parallel()
	s := openSite(t, config.HTTP{})
	check := client{t: t}
	for program, want := range map[string]string{
		`
import { list_buckets } from '/workspace/servers/minio/list_buckets.js';
import { list_databases } from '/workspace/servers/timescaledb/list_databases.js';

const buckets = await list_buckets({});
const databases = await list_databases({});

console.log('Storage:', buckets);
console.log('Databases:', databases);
`: "Storage: [ 'exports', 'logs' ]\nDatabases: [ 'metrics', 'postgres' ]\n",
		`
import { list_databases } from '/workspace/servers/timescaledb/list_databases.js';

const result = await list_databases({});
const databases = Array.isArray(result) ? result : result.content || [];

console.log(` + "`Total databases: ${databases.length}`" + `);
console.log('First 3:', databases.slice(0, 3));
`: "Total databases: 2\nFirst 3: [ 'metrics', 'postgres' ]\n",
		`
const { listServers } = await import('/workspace/servers/discovery.js');
const servers = await listServers();
console.log(servers.join());
`: "filesystem,minio,timescaledb\n",
		`
(async () => {
  const { execute_query } = await import('/workspace/servers/timescaledb/execute_query.js');
  const { upload_object } = await import('/workspace/servers/minio/upload_object.js');

  // Query database
  const result = await execute_query({
    query: "SELECT * FROM metrics WHERE timestamp > NOW() - INTERVAL '1 day'"
  });

  // Filter in execution environment (not in model context!)
  const critical = result.rows.filter(m => m.value > 100);

  // Upload to S3
  const csv = critical.map(r => Object.values(r).join(',')).join('\\n');
  await upload_object({
    bucket: 'exports',
    key: ` + "`export-${Date.now()}.csv`" + `,
    content: csv
  });

  console.log(` + "`Exported ${critical.length} critical metrics`" + `);
})()
`: "Exported 2 critical metrics\n",
		`
import { execute_query } from './servers/timescaledb/execute_query.js';
const result = await execute_query({ query: "SELECT 1" });
console.log(JSON.stringify(result.rows.slice(0, 1)));
`: "[{\"value\":90}]\n",
		`
import { searchTools, listServerTools } from '/workspace/servers/discovery.js';
console.log((await searchTools('bucket'))[0].path, await listServerTools('minio'));
`: "/workspace/servers/minio/list_buckets.ts [ 'list_buckets', 'upload_object' ]\n",
	} {
		check.has(s.execute(program, nil), object{"output": want, "error": nil})
	}
	dirs := s.execute(`
import { list_allowed_directories } from '/workspace/servers/filesystem/list_allowed_directories.js';

const dirs = await list_allowed_directories({});
console.log('Allowed directories:', dirs);
`, nil)
	if out, _ := dirs["output"].(string); !strings.Contains(out, "Allowed directories:") || !strings.Contains(out, "/TestWebPrograms") {
		t.Errorf("the real upstream: %v", dirs)
	}
}

// TestWebFailures: what fails is told as code-executor tells it.
func TestWebFailures(t *testing.T) {
	t.Parallel()
	s := openSite(t, config.HTTP{Tokens: config.Secrets{"ann": "s3cret-of-ann"}})
	check := client{t: t}
	for _, path := range []string{"/tools", "/tools/search?query=x"} {
		if status, _ := s.ask("GET", path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, status)
		}
	}
	status, health := s.ask("GET", "/health", "")
	check.has(health, object{"status": "healthy", "toolsByServer": nil})
	if status != http.StatusOK {
		t.Errorf("/health without a token: %d", status)
	}
	s.token = "s3cret-of-ann"
	for _, test := range []struct {
		method, path, body string
		status             int
		why                string
	}{
		{"POST", "/execute", `{}`, 400, "Code is required and must be a string"},
		{"POST", "/execute", `{"code":5}`, 400, "Code is required and must be a string"},
		{"POST", "/execute", `{"code":"1","timeout":5}`, 400, "Timeout must be between 1000ms and 300000ms"},
		{"POST", "/execute", `{"code":"1","language":"ruby"}`, 400, `Language must be "typescript" or "python"`},
		{"GET", "/tools/info/minio/none", "", 404, "Tool not found"},
		{"GET", "/tools/search?detail=all", "", 400, "detail must be name, description or full"},
	} {
		status, said := s.ask(test.method, test.path, test.body)
		if said["error"] != test.why || status != test.status {
			t.Errorf("%s %s: %d %v", test.path, test.body, status, said)
		}
	}
	broken := s.execute("console.log('before'); throw new Error('broken')", nil)
	check.has(broken, object{"output": "before\n"})
	if why, _ := broken["error"].(string); !strings.Contains(why, "broken") {
		t.Errorf("error: %v", broken)
	}
	if why, _ := s.execute("for (;;) {}", object{"timeout": 1000})["error"].(string); why != "Execution timed out after 1000ms" {
		t.Errorf("timeout: %q", why)
	}
}
