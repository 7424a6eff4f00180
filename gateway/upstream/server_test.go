package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/testutil/tlstest"
)

// modeVar makes the test binary an upstream instead of running tests. Its value
// lists, separated by commas, in which ways that upstream misbehaves.
const modeVar = "UPSTREAM_TEST_MODE"

func TestMain(m *testing.M) {
	mode, ok := os.LookupEnv(modeVar)
	switch {
	case !ok:
		os.Exit(tlstest.M{Tests: m}.Run())
	case mode == "sdk" || mode == "sdk,late":
		if mode == "sdk,late" {
			time.Sleep(600 * time.Millisecond)
		}
		serveSDK()
	case strings.HasPrefix(mode, "talk"):
		newTalker(mode, os.Stdout).run()
	case mode == "gateway":
		beGateway()
	default:
		(&rawServer{modes: strings.Split(mode, ","), out: os.Stdout, inFlight: map[string]chan struct{}{}}).run()
	}
}

// serveSDK is an upstream of the newest revision.
func serveSDK() {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	addEcho(server, "echo")
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

func addEcho(server *mcp.Server, name string) {
	server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
}

// rawServer speaks JSON-RPC by hand, so that it can misbehave.
type rawServer struct {
	modes []string
	mu    sync.Mutex // guards out and what follows
	out   io.Writer
	extra []string // names of tools added while running
	// inFlight are the slow calls, by request id; cancelled counts those that were.
	inFlight  map[string]chan struct{}
	cancelled int
	pages     int
	pinger    *request // the call that waits for our ping to be answered
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		RequestID json.RawMessage `json:"requestId"`
		Version   string          `json:"protocolVersion"`
	} `json:"params"`
}

func (s *rawServer) is(mode string) bool { return slices.Contains(s.modes, mode) }

func (s *rawServer) run() {
	s.countStart()
	fmt.Fprintln(os.Stderr, "raw server starts")
	if s.is("exit") {
		fmt.Fprintf(os.Stderr, "Error: no database at %s\n    at main.js:1\n\nNode.js v20\n", os.Getenv("PASSWORD"))
		os.Exit(3)
	}
	if s.is("stubborn") {
		signal.Ignore(syscall.SIGTERM)
		if !s.is("grandchild") {
			s.startGrandchild()
		}
	}
	if s.is("deaf") {
		time.Sleep(time.Hour)
	}
	if s.is("junk") {
		s.junk()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if s.is("stubborn") {
				time.Sleep(time.Hour)
			}
			return
		}
		var req request
		if json.Unmarshal(line, &req) == nil {
			s.handle(req)
		}
	}
}

// countStart adds a line to a file, so that a test sees how often we were started.
func (s *rawServer) countStart() {
	if path := os.Getenv("STARTS"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, os.Getpid())
			f.Close()
		}
	}
}

func (s *rawServer) startGrandchild() {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), modeVar+"=stubborn,grandchild,deaf")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		panic(err)
	}
}

func (s *rawServer) junk() {
	fmt.Fprintln(s.out, "Welcome to \x1b[31mjunk\x1b[0m!")
	fmt.Fprintln(s.out, `{"level":30,"msg":"a log line in JSON"}`)
	fmt.Fprintln(s.out, `{"jsonrpc":"2.0","id":`)
	fmt.Fprintln(s.out, `[1,2]`)
	fmt.Fprintln(s.out, strings.Repeat("x", 300_000))
	for range 50 {
		fmt.Fprintln(s.out, "more junk")
	}
}

func (s *rawServer) write(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
}

func (s *rawServer) result(req request, result string) {
	s.write(fmt.Sprintf(`{"result":%s,"jsonrpc":"2.0","id":%s}`, result, req.ID))
}

func (s *rawServer) failure(req request, code int, message string) {
	text, _ := json.Marshal(message)
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, req.ID, code, text))
}

func (s *rawServer) handle(req request) {
	switch req.Method {
	case "server/discover":
		switch {
		case s.is("silent"):
		case s.is("stuck"):
			time.Sleep(time.Hour)
		default:
			s.failure(req, -32601, "method not found")
		}
	case "initialize":
		s.result(req, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw\u001b[31m","version":"1.2"}}`, req.Params.Version))
	case "tools/list":
		s.list(req)
	case "tools/call":
		s.call(req)
	case "":
		if string(req.ID) == `"ours"` {
			s.result(*s.pinger, `{"content":[{"type":"text","text":"pong"}]}`)
		}
	case "notifications/cancelled":
		s.cancel(string(req.Params.RequestID))
	}
}

func (s *rawServer) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop, ok := s.inFlight[id]; ok {
		delete(s.inFlight, id)
		s.cancelled++
		close(stop)
	}
}

// definitions hold what the SDK's types would change: the order of properties,
// annotations that were not sent, execution.
var definitions = []string{
	`{"name":"echo","title":"Echo","description":"Echoes.","inputSchema":{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"}}},"execution":{"taskSupport":"optional"},"annotations":{"readOnlyHint":true}}`,
	`{"name":"say-hello","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"z":{},"a":{}}}}`,
	`{"name":"fail","inputSchema":{"type":"object"}}`, `{"name":"refuse","inputSchema":{"type":"object"}}`,
	`{"name":"slow","inputSchema":{"type":"object"}}`, `{"name":"cancelled","inputSchema":{"type":"object"}}`,
	`{"name":"big","inputSchema":{"type":"object"}}`, `{"name":"odd","inputSchema":{"type":"object"}}`,
	`{"name":"env","inputSchema":{"type":"object"}}`, `{"name":"crash","inputSchema":{"type":"object"}}`,
	`{"name":"grow","inputSchema":{"type":"object"}}`, `{"name":"touch","inputSchema":{"type":"object"}}`,
	`{"name":"nonsense","inputSchema":{"type":"object"}}`, `{"name":"flood","inputSchema":{"type":"object"}}`,
	`{"name":"pings","inputSchema":{"type":"object"}}`, `{"name":"ping","inputSchema":{"type":"object"}}`,
}

var strange = []string{
	`{"name":"","inputSchema":{"type":"object"}}`, `{"inputSchema":{}}`, `"a string"`, `null`,
	`{"name":"schemaless"}`, `{"name":"true-schema","inputSchema":true,"outputSchema":[]}`,
	`{"name":"echo","description":"a second echo"}`, `{"name":"__init__"}`, `{"name":"../x"}`, `{"name":"größe"}`,
	`{"name":"wrong","title":7,"description":{"a":1},"annotations":{"readOnlyHint":"yes","destructiveHint":false}}`,
	`{"name":"` + strings.Repeat("n", 200) + `"}`, `{"name":"` + strings.Repeat("n", 5000) + `"}`,
}

func (s *rawServer) list(req request) {
	s.mu.Lock()
	tools := slices.Clone(definitions)
	for _, name := range s.extra {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	s.pages++
	page := s.pages
	s.mu.Unlock()
	cursor := ""
	switch {
	case s.is("strange"):
		tools = append(tools, strange...)
	case s.is("cursor"):
		cursor = `,"nextCursor":"again"`
	case s.is("endless"):
		tools, cursor = nil, fmt.Sprintf(`,"nextCursor":"%d"`, page)
	case s.is("many"):
		tools, cursor = nil, fmt.Sprintf(`,"nextCursor":"%d"`, page)
		for i := range 3000 {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d_%d"}`, page, i))
		}
	case s.is("paged") && req.Params.Cursor == "":
		tools, cursor = tools[:5], `,"nextCursor":"second"`
	case s.is("paged"):
		tools = tools[5:]
	}
	s.result(req, fmt.Sprintf(`{"tools":[%s]%s}`, strings.Join(tools, ","), cursor))
}

const oddContent = `[{"type":"text","text":"plain"},
 {"type":"hologram","depth":9007199254740993,"b":1,"a":2},
 {"type":"image","data":"aGVsbG8=","mimeType":"image/png"},
 {"type":"image","data":"!!!","mimeType":"image/png"},
 {"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"inside"}},
 {"type":"resource","resource":{"uri":"file:///b","blob":"AAE="}},
 {"type":"resource_link","uri":"file:///c","name":"c"}, 7]`

func (s *rawServer) call(req request) {
	if raw := rawAnswer(req); raw != "" {
		s.write(raw)
		return
	}
	switch req.Params.Name {
	case "echo", "say-hello", "extra0":
		s.result(req, fmt.Sprintf(`{"content":[{"type":"text","text":"ok"}],"structuredContent":%s}`, req.Params.Arguments))
	case "fail":
		s.result(req, `{"content":[{"type":"text","text":"no such row"}],"isError":true}`)
	case "refuse":
		s.failure(req, -32602, "city\x1b[2J is required")
	case "slow":
		s.slow(req)
	case "cancelled":
		s.mu.Lock()
		n := s.cancelled
		s.mu.Unlock()
		s.result(req, fmt.Sprintf(`{"content":[],"structuredContent":{"n":%d}}`, n))
	case "big":
		s.result(req, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 20<<20)+`"}]}`)
	case "odd":
		s.result(req, `{"structuredContent":{"n":9007199254740993,"z":1,"a":1.0},"content":`+strings.ReplaceAll(oddContent, "\n", "")+`}`)
	case "env":
		env, _ := json.Marshal(os.Environ())
		s.result(req, fmt.Sprintf(`{"content":[],"structuredContent":%s}`, env))
	case "crash":
		fmt.Fprintf(os.Stderr, "fatal: lost %s\n", os.Getenv("PASSWORD"))
		os.Exit(7)
	case "grow":
		s.mu.Lock()
		s.extra = append(s.extra, fmt.Sprintf("extra%d", len(s.extra)))
		s.mu.Unlock()
		s.change(req)
	case "touch":
		s.change(req)
	case "nonsense":
		s.result(req, `["not a result"]`)
	case "pings": // and does not read the answers
		for i := range 20_000 {
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"ping %d","method":"ping"}`, i))
		}
		s.result(req, `{"content":[]}`)
	case "ping":
		s.ping(req)
	case "flood":
		s.write(strings.Repeat(" ", 10) + `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 65<<20) + `"}`)
	default:
		s.failure(req, -32602, "unknown tool")
	}
}

// rawAnswer is what the call asks to be answered with, byte by byte, "" for nothing
// in particular: ID stands for the request's id.
func rawAnswer(req request) string {
	var args struct{ Line []byte }
	_ = json.Unmarshal(req.Params.Arguments, &args)
	return strings.ReplaceAll(string(args.Line), "ID", string(req.ID))
}

// change says five times that the list changed, as servers do that add tools in a loop.
func (s *rawServer) change(req request) {
	for range 5 {
		s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	s.result(req, `{"content":[]}`)
}

func (s *rawServer) slow(req request) {
	stop := make(chan struct{})
	s.mu.Lock()
	s.inFlight[string(req.ID)] = stop
	s.mu.Unlock()
	go func() {
		select {
		case <-stop:
		case <-time.After(20 * time.Second):
			s.result(req, `{"content":[]}`)
		}
	}()
}

// ping asks the client something before it answers.
func (s *rawServer) ping(req request) {
	s.pinger = &req
	s.write(`{"jsonrpc":"2.0","id":"ours","method":"ping"}`)
}
