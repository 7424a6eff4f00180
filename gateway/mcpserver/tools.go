package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/execution"
	"sallyport/gateway/mcpserver/session"
	"sallyport/gateway/mcpserver/ticket"
	"sallyport/internal/tool"
)

// Tools is the MCP server that New makes. Close it.
type Tools struct {
	*mcp.Server
	ids     *session.IDs
	pending *pendingCalls
	// upstreams returns those in the description of search_tools that a caller sees.
	upstreams func(ctx context.Context) []catalog.Upstream
	listed    listed
	// unwatch ends the notifications of changes; nil for none.
	unwatch func()
	close   func()
}

// Close cancels the programs that wait for their client, and waits for them. It is idempotent.
func (t *Tools) Close() { t.close() }

// follow notifies each session with another description of search_tools after a change of the upstreams. changed has the SDK
// notify all.
func (t *Tools) follow(opts *Options, changed func()) {
	if opts.Watch == nil {
		return
	}
	t.AddReceivingMiddleware(t.recordList)
	t.AddSendingMiddleware(t.listed.onlyChanged)
	t.unwatch = opts.Watch(changed)
}

// recordList is receiving middleware that records the list of each session that lists tools or subscribes to changes.
func (t *Tools) recordList(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" || method == methodListen {
			caller := tool.Detach(ctx)
			t.listed.record(method, req, t.listDigest(ctx), func() digest { return t.listDigest(caller) })
		}
		return next(ctx, method, req)
	}
}

// listDigest returns the digest of the part of the caller's list that can change.
func (t *Tools) listDigest(ctx context.Context) digest {
	return sha256.Sum256([]byte(searchTool(t.upstreams(ctx)).Description))
}

// showUpstreams is receiving middleware that lists search_tools with the upstreams that the caller sees.
func (t *Tools) showUpstreams(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		list, ok := result.(*mcp.ListToolsResult)
		if !ok || err != nil {
			return result, err
		}
		shown, search := *list, searchTool(t.upstreams(ctx))
		shown.Tools = slices.Clone(list.Tools)
		for i, one := range shown.Tools {
			if one.Name == search.Name {
				described := *one
				described.Description = search.Description
				shown.Tools[i] = &described
			}
		}
		return &shown, nil
	}
}

func newTools(server *mcp.Server, ids *session.IDs, key []byte) *Tools {
	t := &Tools{Server: server, ids: ids, pending: newPendingCalls(key)}
	t.close = sync.OnceFunc(func() {
		if t.unwatch != nil {
			t.unwatch()
		}
		t.pending.close()
	})
	server.AddSendingMiddleware(sendRaw)
	return t
}

// request is one call of a tool that runs programs.
type request struct {
	*mcp.CallToolRequest
	client  *client
	pending *pendingCalls
}

func (t *Tools) newRequest(ctx context.Context, req *mcp.CallToolRequest) *request {
	c := newClient(ctx, req.Session, object{"_meta": encode(req.Params.Meta)}, req)
	c.typed = true
	return &request{req, c, t.pending}
}

// run runs a program. The program can send requests to its client if the client supports that.
func (r *request) run(ctx context.Context, verbs Service, p execution.Program) (*mcp.CallToolResult, error) {
	return r.runFor(ctx, func(ctx context.Context, peer tool.Peer) (*mcp.CallToolResult, error) {
		p.Peer = peer
		return runProgram(ctx, verbs, p, r.CallToolRequest)
	})
}

// answering answers a call. The peer is the client of its programs, nil if it answers no requests.
type answering func(ctx context.Context, peer tool.Peer) (*mcp.CallToolResult, error)

// runFor calls do, which may run programs that send requests to the client.
func (r *request) runFor(ctx context.Context, do answering) (*mcp.CallToolResult, error) {
	defer r.client.out.Flush()
	asks := r.client.answers[methodElicit] || r.client.answers[methodSample]
	switch {
	case r.client.modern && (asks || r.Params.RequestState != ""):
		return r.runModern(ctx, do)
	case asks:
		return do(ctx, programClient{r.client})
	}
	return do(ctx, nil)
}

// runModern runs a program for a modern client, or resumes a pending one.
func (r *request) runModern(ctx context.Context, do answering) (*mcp.CallToolResult, error) {
	params := object{
		"name": encode(r.Params.Name), "arguments": orEmptyObject(r.Params.Arguments),
		"requestState": encode(r.Params.RequestState), "inputResponses": encode(r.Params.InputResponses),
	}
	if state := r.Params.RequestState; state != "" && !ticket.Is(state) {
		return nil, errTicket
	}
	result, err := r.pending.callOrResume(ctx, r.client, "tools/call", params, func(ctx context.Context, peer tool.Peer) (any, error) {
		return do(ctx, programClient{peer})
	})
	if gone, ok := errors.AsType[*notPendingError](err); ok {
		return textResult(gone.Error(), true), nil
	}
	if err != nil {
		return nil, err
	}
	asked, ok := result.(inputRequired)
	if !ok {
		done, _ := result.(*mcp.CallToolResult)
		return done, nil
	}
	more := &mcp.CallToolResult{RequestState: asked.ticket}
	if err := json.Unmarshal(asked.requests(), &more.InputRequests); err != nil {
		return nil, err
	}
	return more, nil
}

// programClient is the client of a program, which gets the requests of the gateway and of upstreams. It drops
// notifications: those of the upstreams go to the program.
type programClient struct{ tool.Peer }

// Notify implements [tool.Peer].
func (programClient) Notify(string, json.RawMessage) {}
