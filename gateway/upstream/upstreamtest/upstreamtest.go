// Package upstreamtest is a hostile MCP server: it has a mode for each known or
// possible way in which a server can harm its clients. [Main] turns a test binary
// into that server over stdio, [Handler] serves it over HTTP. In the mode [Good] it
// behaves correctly. It writes JSON-RPC by hand, since no library would send its
// messages.
package upstreamtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Var is the environment variable with the mode of a server over stdio.
const Var = "UPSTREAMTEST_MODE"

// Good is the mode of a server without a trap: it has a tool "echo", which
// answers with its arguments.
const Good = "good"

// Main is called first in TestMain: where [Var] is set, the process is a server
// until its input ends, and Main does not return.
func Main() {
	mode, ok := os.LookupEnv(Var)
	if !ok {
		return
	}
	trap, ok := stdioTraps()[mode]
	if !ok {
		fmt.Fprintf(os.Stderr, "no mode %q\n", mode)
		os.Exit(2)
	}
	var mu sync.Mutex
	s := &server{trap: trap, ctx: context.Background(), state: &state{}, raw: func(data []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(data)
	}}
	s.serve(os.Stdin)
	os.Exit(0)
}

// Modes returns the modes over stdio, sorted; those over HTTP are [HTTPModes].
func Modes() []string { return slices.Sorted(maps.Keys(stdioTraps())) }

// HTTPModes returns the modes over HTTP, sorted.
func HTTPModes() []string { return slices.Sorted(maps.Keys(httpTraps())) }

// trap is one way to misbehave. Everything that it does not override is correct.
type trap struct {
	// start is called before anything is read.
	start func(s *server)
	// before is called before each request is answered.
	before func(s *server, r request)
	// methods replace the correct responses.
	methods map[string]func(s *server, r request)
	// end is called when the input has ended.
	end func()
}

// state is the mutable state of a server.
type state struct {
	mu    sync.Mutex
	count int
}

func (s *state) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}

type server struct {
	trap
	*state
	ctx context.Context //nolint:containedctx // of the HTTP request that is answered
	raw func(data []byte)
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		Version   string          `json:"protocolVersion"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

func (s *server) serve(in io.Reader) {
	if s.start != nil {
		s.start(s)
	}
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r request
		if json.Unmarshal(line, &r) == nil && r.Method != "" {
			s.handle(r)
		}
	}
	if s.end != nil {
		s.end()
	}
}

func (s *server) handle(r request) {
	if s.before != nil {
		s.before(s, r)
	}
	if own, ok := s.methods[r.Method]; ok {
		own(s, r)
		return
	}
	s.good(r)
}

// good responds correctly, in the requested revision.
func (s *server) good(r request) {
	switch r.Method {
	case "initialize":
		s.result(r, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"upstreamtest","version":"1"}}`, r.Params.Version))
	case "tools/list":
		s.result(r, `{"tools":[`+echoTool+`]}`)
	case "tools/call":
		s.text(r, string(r.Params.Arguments))
	case "ping":
		s.result(r, `{}`)
	default:
		if len(r.ID) > 0 {
			s.fail(r, -32601, "method not found")
		}
	}
}

const echoTool = `{"name":"echo","description":"Says what it is told.","inputSchema":{"type":"object"}}`

func (s *server) line(text string) { s.raw([]byte(text + "\n")) }

func (s *server) result(r request, result string) {
	s.line(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + `}`)
}

func (s *server) text(r request, text string) {
	quoted, _ := json.Marshal(text)
	s.result(r, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (s *server) fail(r request, code int, message string) {
	quoted, _ := json.Marshal(message)
	s.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, r.ID, code, quoted))
}

// hang waits until the client disconnects, for at most an hour; over stdio always an hour.
func (s *server) hang() {
	select {
	case <-s.ctx.Done():
	case <-time.After(time.Hour):
	}
}

// tools returns a handler of tools/list with definitions.
func tools(definitions ...string) func(s *server, r request) {
	list := `{"tools":[` + strings.Join(definitions, ",") + `]}`
	return func(s *server, r request) { s.result(r, list) }
}

// on is a trap in one method.
func on(method string, do func(s *server, r request)) trap {
	return trap{methods: map[string]func(*server, request){method: do}}
}

// answers is a trap in the result of tools/call.
func answers(result string) trap {
	return on("tools/call", func(s *server, r request) { s.result(r, result) })
}
