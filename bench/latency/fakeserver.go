package main

import (
	"context"
	"encoding/json"

	"sallyport/bench/bareserver"
)

const list = `{"tools":[{"name":"echo","description":"Answer at once.","inputSchema":` + echoSchema + `},{"name":"large","description":"Answer with 10 MB.","inputSchema":` + largeSchema + `}]}`

// newFakeServer is a server with tools that answer at once and with 10 MB.
func newFakeServer() *bareserver.Server {
	results := map[string][]byte{"": bareserver.Result(echoed)}
	for _, answers := range []map[string]json.RawMessage{large(), people()} {
		for kind, answer := range answers {
			results[kind] = bareserver.Result(answer)
		}
	}
	return &bareserver.Server{List: []byte(list), Answer: func(_ context.Context, _ string, args json.RawMessage) []byte { return results[kindOf(args)] }}
}
