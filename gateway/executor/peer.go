package executor

import (
	"context"
	"encoding/json"
	"errors"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// programPeer is a program during one call as the upstream sees it: what the upstream says goes to the program, and what it
// asks to the program's client, in the upstream's name.
type programPeer struct {
	tool.Peer
	client   tool.Peer
	upstream string
	ctx      context.Context //nolint:containedctx // of the one call, which it is asked during
	running  *toolcall.Execution
}

// asked returns the peer of a call of a program.
func (a agent) asked(ctx context.Context, c tool.Call) tool.Peer {
	if a.Peer == nil || c.Peer == nil {
		return c.Peer
	}
	return programPeer{c.Peer, a.Peer, c.Tool.Upstream, ctx, a.Execution}
}

// Ask implements [tool.Peer]. The program's clock is paused for that time. A program has no folders of its client's.
func (p programPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	signed, ok := inName(p.upstream, method, params)
	if !ok {
		return p.Peer.Ask(ctx, method, params)
	}
	if toolcall.ApprovalID(ctx) != "" { // of a workflow that the program calls: the gateway asks, and says so
		signed = params
	}
	defer tool.Pause(p.ctx)()
	reply, err := p.client.Ask(p.scoped(ctx), method, signed)
	if errors.Is(err, tool.ErrCannotAsk) {
		return p.Peer.Ask(ctx, method, params) // which says what would help
	}
	return reply, err
}

// scoped returns ctx as the program's own.
func (p programPeer) scoped(ctx context.Context) context.Context {
	s := toolcall.ScopeOf(ctx)
	s.Execution = p.running
	return s.In(ctx)
}

// namedPeer is the peer that started a run, asked during one of its calls.
type namedPeer struct {
	tool.Peer
	upstream string
}

// Ask implements [tool.Peer].
func (p namedPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if signed, ok := inName(p.upstream, method, params); ok && toolcall.ApprovalID(ctx) == "" {
		params = signed
	}
	return p.Peer.Ask(ctx, method, params)
}

// maxAskedText is how much of an upstream's question a person reads, in characters.
const maxAskedText = 4000

// inName adds the upstream's name to a question, where a person sees it: in the message of an elicitation, and before the
// system prompt of what a model is asked. ok is false for what is not passed on.
func inName(upstream, method string, params json.RawMessage) (signed json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || fields == nil {
		return nil, false
	}
	member, text, err := "", "", error(nil)
	switch method {
	case "elicitation/create":
		member = "message"
		_ = json.Unmarshal(fields[member], &text) // none then
		text = upstream + ": " + sanitize.Text(text, maxAskedText)
	case "sampling/createMessage":
		member = "systemPrompt"
		_ = json.Unmarshal(fields[member], &text) // none then
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

// ForRun sets the run of a call that a workflow run makes itself, and names the upstream in what it asks.
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
