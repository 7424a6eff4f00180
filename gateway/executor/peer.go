package executor

import (
	"context"
	"encoding/json"
	"errors"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// programPeer is the peer of an upstream during one call by a program: it passes notifications to the program, and
// requests to the program's client, labelled with the upstream's name.
type programPeer struct {
	tool.Peer
	client    tool.Peer
	upstream  string
	ctx       context.Context //nolint:containedctx // of the call
	execution *toolcall.Execution
}

// peerFor returns the peer of a call of a program.
func (a agent) peerFor(ctx context.Context, c tool.Call) tool.Peer {
	if a.Peer == nil || c.Peer == nil {
		return c.Peer
	}
	return programPeer{c.Peer, a.Peer, c.Tool.Upstream, ctx, a.Execution}
}

// Ask implements [tool.Peer]. It pauses the program's clock. It does not pass on requests for the client's roots.
func (p programPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	signed, ok := addUpstreamName(p.upstream, method, params)
	if !ok {
		return p.Peer.Ask(ctx, method, params)
	}
	if toolcall.ApprovalID(ctx) != "" { // from a workflow that the program calls: the gateway itself asks
		signed = params
	}
	defer tool.Pause(p.ctx)()
	reply, err := p.client.Ask(p.withScope(ctx), method, signed)
	if errors.Is(err, tool.ErrCannotAsk) {
		return p.Peer.Ask(ctx, method, params) // whose error has a hint
	}
	return reply, err
}

// withScope returns ctx with the program as its execution.
func (p programPeer) withScope(ctx context.Context) context.Context {
	s := toolcall.ScopeOf(ctx)
	s.Execution = p.execution
	return s.In(ctx)
}

// namedPeer is the peer that started a run, during one of the run's calls.
type namedPeer struct {
	tool.Peer
	upstream string
}

// Ask implements [tool.Peer].
func (p namedPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if signed, ok := addUpstreamName(p.upstream, method, params); ok && toolcall.ApprovalID(ctx) == "" {
		params = signed
	}
	return p.Peer.Ask(ctx, method, params)
}

// maxAskedText bounds the text of an upstream's request to a person, in characters.
const maxAskedText = 4000

// addUpstreamName adds the upstream's name to a request: to the message of an elicitation, and to the system prompt of a sampling
// request. ok is false for requests that are not passed on.
func addUpstreamName(upstream, method string, params json.RawMessage) (signed json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || fields == nil {
		return nil, false
	}
	member, text, err := "", "", error(nil)
	switch method {
	case "elicitation/create":
		member = "message"
		_ = json.Unmarshal(fields[member], &text) // empty after an error
		text = upstream + ": " + sanitize.Text(text, maxAskedText)
	case "sampling/createMessage":
		member = "systemPrompt"
		_ = json.Unmarshal(fields[member], &text) // empty after an error
		text = "Asked by the MCP server " + upstream + ", behind sallyport. " + text
	default:
		return nil, false
	}
	if fields[member], err = sanitize.JSON(text); err != nil {
		return nil, false
	}
	signed, err = sanitize.JSON(fields)
	return signed, err == nil
}

// ForRun sets the run of a call that a workflow run makes itself, and labels the upstream's requests with its name.
func ForRun(ctx context.Context, c tool.Call) tool.Call {
	by := toolcall.ScopeOf(ctx).Run
	if by == "" || toolcall.ExecutionOf(ctx) != nil {
		return c
	}
	if c.Execution == "" {
		c.Execution = by
	}
	if c.Peer != nil {
		c.Peer = namedPeer{c.Peer, c.Tool.Upstream}
	}
	return c
}
