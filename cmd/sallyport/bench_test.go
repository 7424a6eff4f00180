package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listServer is "listserver FILE FIRST LAST": an upstream over stdio that lists
// those tools of a tools/list answer in a file, and notes each start in $STARTS.
func listServer() {
	data, err := os.ReadFile(os.Args[1])
	check(err)
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	check(json.Unmarshal(data, &list))
	var first, last int
	_, err = fmt.Sscan(os.Args[2]+" "+os.Args[3], &first, &last)
	check(err)
	list.Tools = list.Tools[first:last]
	noteStart()
	lines := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		check(json.Unmarshal(line, &request))
		answer := map[string]any{"jsonrpc": "2.0", "id": request.ID}
		switch request.Method {
		case "initialize":
			answer["result"] = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"list","version":"1"}}`)
		case "tools/list":
			answer["result"] = list
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "method not found"}
		}
		if request.ID != nil {
			check(json.NewEncoder(os.Stdout).Encode(answer))
		}
	}
}

// noteStart adds a line to the file of starts, if there is one.
func noteStart() {
	path := os.Getenv("STARTS")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	fmt.Fprintln(f, os.Args[1:])
	check(f.Close())
}

// BenchmarkServe is the start of serve with 60 upstreams of 2,000 real tools
// that the cache knows: the time until the client has initialize and tools/list
// answered, and from the start until the first search is answered.
func BenchmarkServe(b *testing.B) {
	env, config, starts := manyUpstreams(b)
	warm := exec.Command(filepath.Join(env["BIN"], "sallyport"), "--config", config, "tools")
	warm.Env = environ(env)
	if out, err := warm.CombinedOutput(); err != nil {
		b.Fatalf("%v: %.1000s", err, out)
	}
	before, err := os.ReadFile(starts)
	if err != nil {
		b.Fatal(err)
	}
	var listed, searched []time.Duration
	for b.Loop() {
		l, s := startServe(b, env, config)
		listed, searched = append(listed, l), append(searched, s)
	}
	after, err := os.ReadFile(starts)
	if err != nil || strings.Count(string(before), "\n") != 60 || string(after) != string(before) {
		b.Errorf("started %d upstreams before and %d after, %v; want 60 and no more", strings.Count(string(before), "\n"), strings.Count(string(after), "\n"), err)
	}
	slices.Sort(listed)
	slices.Sort(searched)
	b.ReportMetric(float64(listed[len(listed)/2].Milliseconds()), "listed-p50-ms")
	b.ReportMetric(float64(listed[len(listed)-1].Milliseconds()), "listed-max-ms")
	b.ReportMetric(float64(searched[len(searched)/2].Milliseconds()), "searched-p50-ms")
	b.ReportMetric(float64(searched[len(searched)-1].Milliseconds()), "searched-max-ms")
}

func startServe(b *testing.B, env map[string]string, config string) (listed, searched time.Duration) {
	b.Helper()
	command := exec.Command(filepath.Join(env["BIN"], "sallyport"), "--config", config, "--log-level", "error", "serve")
	command.Env, command.Stderr = environ(env), os.Stderr
	begin := time.Now()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if list, err := session.ListTools(b.Context(), nil); err != nil || len(list.Tools) != 2 {
		b.Fatal(list, err)
	}
	listed = time.Since(begin)
	found, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "search_tools", Arguments: map[string]any{"query": "read a file"}})
	searched = time.Since(begin)
	if text := found.Content[0].(*mcp.TextContent).Text; err != nil || !strings.Contains(text, "import") {
		b.Fatalf("%v: %s", err, text)
	}
	if err := session.Close(); err != nil {
		b.Error(err)
	}
	return listed, searched
}

// manyUpstreams writes settings with 60 upstreams of 2,000 tools of the catalog that lies beside the project.
func manyUpstreams(b *testing.B) (env map[string]string, config, starts string) {
	b.Helper()
	shared, err := filepath.Abs("../../../shared/catalog")
	if err != nil {
		b.Fatal(err)
	}
	files, _ := filepath.Glob(shared + "/*.json")
	if len(files) == 0 {
		b.Skip("no ../shared/catalog beside the project")
	}
	dir := b.TempDir()
	env = map[string]string{"GOGC": os.Getenv("GOGC"), "BIN": filepath.Join(dir, "bin"), "XDG_CACHE_HOME": filepath.Join(dir, "cache"), "XDG_DATA_HOME": filepath.Join(dir, "data"), "PATH": filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR": dir}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(env["BIN"], 0o700); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"sallyport", "listserver"} {
		if err := os.Symlink(self, filepath.Join(env["BIN"], name)); err != nil {
			b.Fatal(err)
		}
	}
	starts = filepath.Join(dir, "starts")
	text := strings.Builder{}
	text.WriteString("upstreams:\n")
	for i, part := range portions(b, files, 60, 2000) {
		fmt.Fprintf(&text, "  up%d: {command: listserver, args: [%q, \"%d\", \"%d\"], env: {STARTS: %q}}\n", i, part.file, part.first, part.last, starts)
	}
	config = filepath.Join(dir, "upstreams.yaml")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	return env, config, starts
}

type portion struct {
	file        string
	first, last int
}

// portions deals the tools of the files out to n upstreams, as evenly as the files allow.
func portions(b *testing.B, files []string, n, tools int) (parts []portion) {
	b.Helper()
	for _, file := range files {
		var list struct{ Tools []json.RawMessage }
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err != nil {
			b.Fatal(err)
		}
		parts = append(parts, portion{file, 0, len(list.Tools)})
	}
	for range 2 { // 1,800 tools are there, and more are wanted
		parts = append(parts, slices.MaxFunc(parts, func(x, y portion) int { return x.last - y.last }))
	}
	for len(parts) < n { // halve the largest
		slices.SortFunc(parts, func(x, y portion) int { return (y.last - y.first) - (x.last - x.first) })
		half := (parts[0].first + parts[0].last) / 2
		parts = append(parts, portion{parts[0].file, half, parts[0].last})
		parts[0].last = half
	}
	slices.SortFunc(parts, func(x, y portion) int { return (x.last - x.first) - (y.last - y.first) })
	rest := tools
	for i := range parts {
		size := min(parts[i].last-parts[i].first, rest)
		parts[i].last, rest = parts[i].first+size, rest-size
	}
	b.Logf("%d upstreams, %d tools", len(parts), tools-rest)
	return parts
}

func environ(env map[string]string) (list []string) {
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}
