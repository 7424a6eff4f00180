// Package killtest kills a real gateway that serves over HTTP (SIGKILL), at random moments under a load of programs and workflows, starts
// it again, has everything resumed, and counts what the upstreams did. Its main function is [Run].
package killtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ledger is a file with a line for each thing that an upstream did: the tool and the id of the call. It survives every process.
type ledger string

// add appends a line with one system call.
func (l ledger) add(tool, id string) error {
	f, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(tool + " " + id + "\n")
	return errors.Join(err, f.Close())
}

// counts returns how often each thing was done.
func (l ledger) counts() (map[string]int, error) {
	data, err := os.ReadFile(string(l))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	done := map[string]int{}
	for line := range strings.Lines(string(data)) {
		done[strings.TrimSpace(line)]++
	}
	return done, nil
}

// size returns a number that grows with each thing that is done.
func (l ledger) size() int64 {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0
	}
	return info.Size()
}

type input struct {
	ID string `json:"id"`
}

type output struct {
	ID string `json:"id"`
}

// maxDelay is the longest time that an upstream takes before or after what it does.
const maxDelay = 300 * time.Millisecond

// delay returns a time that depends on the call only: mostly short.
func delay(id, when string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id + when)) // never fails
	n := h.Sum32()
	if n%8 == 0 {
		return maxDelay
	}
	return time.Duration(n%60) * time.Millisecond
}

// server returns an MCP server with a tool that must not be called twice, one that may be, and one that only reads.
func (l ledger) server(name string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	no := false
	mcp.AddTool(s, &mcp.Tool{Name: "pay", Description: "Pay a bill.", Annotations: &mcp.ToolAnnotations{DestructiveHint: &no}}, l.tool("pay"))
	mcp.AddTool(s, &mcp.Tool{Name: "put", Description: "Set a value.", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, l.tool("put"))
	mcp.AddTool(s, &mcp.Tool{Name: "look", Description: "Look at a bill.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, l.tool("look"))
	return s
}

// tool does what it is asked to even if the caller is gone.
func (l ledger) tool(name string) mcp.ToolHandlerFor[input, output] {
	return func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
		time.Sleep(delay(in.ID, "before"))
		if err := l.add(name, in.ID); err != nil {
			return nil, output{}, err
		}
		time.Sleep(delay(in.ID, "after"))
		return nil, output(in), nil
	}
}

// Upstream serves the upstream over stdio until its input ends and everything that it was asked for is done.
func Upstream(ctx context.Context, file string) error {
	err := ledger(file).server("till").Run(ctx, &mcp.StdioTransport{})
	time.Sleep(2 * maxDelay)
	return err
}

// bank serves the upstream over HTTP, in this process: it survives the gateway.
type bank struct {
	server *http.Server
	url    string
	work   sync.WaitGroup
}

func (b *bank) close() {
	_ = b.server.Close() // nobody calls it any more
	b.work.Wait()
}

func serveBank(l ledger, listener net.Listener) *bank {
	server := l.server("bank")
	b := &bank{url: fmt.Sprintf("http://%s/mcp", listener.Addr())}
	b.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)}
	b.work.Go(func() { _ = b.server.Serve(listener) })
	return b
}
