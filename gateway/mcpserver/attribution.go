package mcpserver

import (
	"context"
	"encoding/json"

	"sallyport/gateway/toolcall"
	"sallyport/internal/jsonedit"
	"sallyport/internal/tool"
)

// A user must see which upstream requests input: the client knows only one
// server, the gateway. So the message of a request begins with the upstream's
// ID, where the names of its tools do. Sampling requests stay unchanged, since
// the prefix could change the model's response.

// attributePeer wraps the peer of a call so that its requests name the upstream.
func (d *Direct) attributePeer(peer tool.Peer, call tool.Call) tool.Peer {
	if d.opts.WireNames {
		return peer
	}
	return attributedPeer{peer, call.Tool.Upstream}
}

// attributedPeer is a peer that prefixes the messages of requests with the upstream's ID.
type attributedPeer struct {
	tool.Peer
	upstream string
}

// Ask implements [tool.Peer].
func (s attributedPeer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if toolcall.ApprovalID(ctx) != "" { // a request of the gateway itself
		return s.Peer.Ask(ctx, method, params)
	}
	return s.Peer.Ask(ctx, method, prefixMessage(params, s.upstream))
}

// attributeRequests adds the upstream's ID to the input requests of a result.
func (d *Direct) attributeRequests(raw json.RawMessage, call tool.Call) json.RawMessage {
	if d.opts.WireNames || decodeMember(raw, "resultType") != "input_required" {
		return raw
	}
	return prefixRequests(raw, call.Tool.Upstream)
}

// prefixRequests prefixes the messages of the input requests in a result with an upstream's ID.
func prefixRequests(raw json.RawMessage, upstream string) json.RawMessage {
	return editMember(raw, "inputRequests", func(all json.RawMessage) json.RawMessage {
		var requests object
		if json.Unmarshal(all, &requests) != nil {
			return all
		}
		for key, request := range requests {
			requests[key] = editMember(request, "params", func(params json.RawMessage) json.RawMessage { return prefixMessage(params, upstream) })
		}
		return encode(requests)
	})
}

// prefixMessage prefixes the message in params, if any, with an upstream's ID.
func prefixMessage(params json.RawMessage, upstream string) json.RawMessage {
	var has object
	_ = json.Unmarshal(params, &has) // none then
	message := has["message"]
	if len(message) == 0 || message[0] != '"' {
		return params
	}
	return replaceMember(params, "message", json.RawMessage(`"`+upstream+`: `+string(message[1:])))
}

// replaceMember replaces one member of a JSON object; an empty value changes nothing.
func replaceMember(raw json.RawMessage, member string, value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return raw
	}
	edited, err := jsonedit.Edit(raw, object{member: value})
	if err != nil {
		return raw
	}
	return edited
}
