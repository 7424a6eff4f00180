package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"sallyport/bench/bareserver"
)

const (
	tools = `{"tools":[{"name":"echo","description":"Answer at once.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
		`{"name":"change","description":"Change something and answer at once.","inputSchema":{"type":"object"}},` +
		`{"name":"large","description":"Answer with 10 MB.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
		`{"name":"wait","description":"Answer after half a second.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	largeSize = 10_000_000
	// waitTime is how long a call of wait takes.
	waitTime = 500 * time.Millisecond
)

// upstream is a server with tools that answer at once, with 10 MB, and after half a second. One is not known to change nothing, so that
// each call of it has a record before it is made.
func upstream() *bareserver.Server {
	echoed := bareserver.Result(json.RawMessage(`{"ok":true}`))
	large := bareserver.Result(json.RawMessage(`{"text":"` + strings.Repeat("lorem ipsum dolor sit amet, ", largeSize/28) + `"}`))
	return &bareserver.Server{List: []byte(tools), Answer: func(ctx context.Context, name string, _ json.RawMessage) []byte {
		switch name {
		case "large":
			return large
		case "wait":
			select {
			case <-time.After(waitTime):
			case <-ctx.Done():
			}
		}
		return echoed
	}}
}

// Programs. The value of those that measure is a list of figures.
const (
	lineProgram = "print(6 * 7)"
	// callsProgram is for the name of a tool.
	callsProgram = `import time
from servers.bench import %[1]s
now = time.perf_counter
def one():
    begin = now()
    %[1]s()
    return round((now() - begin) * 1e6)
[one() for _ in range(250)][50:]`
	largeProgram = `import time
from servers.bench import large
now = time.perf_counter
def one():
    begin = now()
    result = large()
    took = now() - begin
    assert len(result["text"]) > 9000000
    return round(took * 1000, 2)
[one() for _ in range(5)][1:]`
	// manyProgram is for the name of a tool. It has so many calls.
	manyProgram = "from servers.bench import %[1]s\nfor _ in range(200): %[1]s()"
	manyCalls   = 200
	// waitProgram is for the number of calls.
	waitProgram = "from servers.bench import wait\nfor _ in range(%d): wait()"
)
