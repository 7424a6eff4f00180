package mcpserver

import (
	"context"
	"encoding/json"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

// A person must see which upstream asks something: the client
// knows of one server only, us. So the message of a question begins with the
// upstream's id, as the names of its tools do, and only where those do. What
// goes to a model (sampling) stays as it is: it would answer something else.

// asking returns the peer of a call, which says who asks.
func (d *Direct) asking(peer tool.Peer, call tool.Call) tool.Peer {
	if d.opts.WireNames {
		return peer
	}
	return signed{peer, call.Tool.Upstream}
}

// signed is a peer that is asked in the name of an upstream.
type signed struct {
	tool.Peer
	upstream string
}

// Ask implements [tool.Peer].
func (s signed) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if toolcall.ApprovalID(ctx) != "" { // the gateway asks, and says so
		return s.Peer.Ask(ctx, method, params)
	}
	return s.Peer.Ask(ctx, method, sign(params, s.upstream))
}

// asked signs the questions of a result that has any.
func (d *Direct) asked(raw json.RawMessage, call tool.Call) json.RawMessage {
	var result struct {
		Type     string `json:"resultType"`
		Requests object `json:"inputRequests"`
	}
	if d.opts.WireNames || json.Unmarshal(raw, &result) != nil || result.Type != "input_required" {
		return raw
	}
	for key, request := range result.Requests {
		var has object
		if json.Unmarshal(request, &has) == nil {
			result.Requests[key] = with(request, "params", sign(has["params"], call.Tool.Upstream))
		}
	}
	return with(raw, "inputRequests", encode(result.Requests))
}

// sign puts an upstream's id before a message, if there is one.
func sign(params json.RawMessage, upstream string) json.RawMessage {
	var has object
	_ = json.Unmarshal(params, &has) // none then
	message := has["message"]
	if len(message) == 0 || message[0] != '"' {
		return params
	}
	return with(params, "message", json.RawMessage(`"`+upstream+`: `+string(message[1:])))
}

// with replaces one member that is there.
func with(raw json.RawMessage, member string, value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return raw
	}
	edited, err := edit(raw, object{member: value})
	if err != nil {
		return raw
	}
	return edited
}
