package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/gateway/mcpserver/views"
	"sallyport/internal/jsonedit"
	"sallyport/internal/mcpapp"
	"sallyport/internal/tool"
)

// A client that shows interfaces of tools (MCP Apps) reads them as resources. Their URIs name their upstream, in the
// definitions of tools, in lists and in results.

// capabilitiesIn returns the capabilities of the client of a request, nil for none.
func capabilitiesIn(req mcp.Request) json.RawMessage {
	if isModernRequest(req) {
		declared, ok := metaOf(req.GetParams())[mcp.MetaKeyClientCapabilities]
		if !ok {
			return nil
		}
		return encode(declared)
	}
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session.InitializeParams() == nil {
		return nil
	}
	return encode(session.InitializeParams().Capabilities)
}

// showsApps reports whether the client of a request shows interfaces.
func showsApps(req mcp.Request) bool { return mcpapp.Accepted(capabilitiesIn(req)) }

// shown returns the entry for a client, nil if it is hidden from it. apps reports that the client shows interfaces.
func (e entry) shown(apps bool) json.RawMessage {
	switch {
	case apps || e.text == nil:
		return e.raw
	case e.appOnly:
		return nil
	}
	return e.text
}

// addAppTools adds the tools that interfaces of an upstream may call, if it has any interface.
func (b *rosterBuilder) addAppTools(upstream string, tools []tool.Tool) {
	if !slices.ContainsFunc(tools, func(t tool.Tool) bool { return mcpapp.Interface(upstream, t.Raw) != "" }) {
		return
	}
	for _, t := range tools {
		if mcpapp.ForApps(t.Raw) {
			b.appTools[t.Wire] = append(b.appTools[t.Wire], t.ID)
		}
	}
}

// appCall returns the params of a call that a client passes on from an interface. An interface names its upstream's tools as the
// upstream does. The name is replaced by the ID of the tool, unless clients know it, or interfaces of several upstreams could mean it.
func (r *roster) appCall(params object) object {
	name := decodeString(params["name"])
	_, shown := r.tools[name]
	meant := r.appTools[name]
	if shown || len(meant) != 1 || r.unknown {
		return params
	}
	params = maps.Clone(params)
	params["name"] = encode(meant[0].String())
	return params
}

// shownURI returns the URI under which clients see a resource of an upstream.
func (r *roster) shownURI(upstream, wire string) string {
	if mcpapp.IsURI(wire) {
		if shown, ok := mcpapp.ShownURI(upstream, wire); ok {
			return shown
		}
		return wire // nothing can be read by an invalid one
	}
	if owner, _, ok := r.resourceUpstream(wire); ok && owner != upstream {
		return uriPrefix + upstream + "/" + wire
	}
	return wire
}

// shownResult replaces the URIs of resources in a result of an upstream by those that clients see. requested is that of
// a request to read one, and wire the upstream's.
func (r *roster) shownResult(call tool.Call, requested string, raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte("uri")) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	own := decodeMember(call.Args, "uri")
	return resultURIs{func(wire string) string {
		if wire == own && requested != "" {
			return requested
		}
		return r.shownURI(call.Tool.Upstream, wire)
	}}.replace(call.Tool.Method(), raw)
}

// resultURIs replaces the URIs in a result by shown.
type resultURIs struct{ shown func(wire string) string }

func (s resultURIs) replace(method string, raw json.RawMessage) json.RawMessage {
	switch method {
	case "tools/call":
		return editMember(raw, "content", eachOf(s.block))
	case tool.GetPrompt:
		return editMember(raw, "messages", eachOf(func(message json.RawMessage) json.RawMessage {
			return editMember(message, "content", s.block)
		}))
	case tool.ReadResource:
		return editMember(raw, "contents", eachOf(s.resource))
	}
	return raw
}

// block replaces the URI in a block of content: that of a link, or of a resource in it.
func (s resultURIs) block(raw json.RawMessage) json.RawMessage {
	if decodeMember(raw, "type") == "resource_link" {
		return s.resource(raw)
	}
	return editMember(raw, "resource", s.resource)
}

// resource replaces the URI of a resource.
func (s resultURIs) resource(raw json.RawMessage) json.RawMessage {
	return editMember(raw, "uri", func(uri json.RawMessage) json.RawMessage {
		wire := decodeString(uri)
		if shown := s.shown(wire); shown != wire {
			return encode(shown)
		}
		return uri
	})
}

// editMember returns an object with a changed member. Whatever else it is stays as it was sent, and without a change all of it.
func editMember(raw json.RawMessage, name string, change func(json.RawMessage) json.RawMessage) json.RawMessage {
	var fields object
	if json.Unmarshal(raw, &fields) != nil || fields[name] == nil {
		return raw
	}
	changed := change(fields[name])
	if bytes.Equal(changed, fields[name]) {
		return raw
	}
	edited, err := jsonedit.Edit(raw, object{name: changed})
	if err != nil {
		return raw
	}
	return edited
}

// eachOf changes each element of a list; any other value stays as it is.
func eachOf(change func(json.RawMessage) json.RawMessage) func(json.RawMessage) json.RawMessage {
	return func(raw json.RawMessage) json.RawMessage {
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return raw
		}
		same := true
		for i, one := range all {
			all[i] = change(one)
			same = same && bytes.Equal(all[i], one)
		}
		if same {
			return raw
		}
		return encode(all)
	}
}

// decodeMember returns a member that is a string, "" for any other.
func decodeMember(raw json.RawMessage, name string) string {
	var fields object
	_ = json.Unmarshal(raw, &fields) // none then
	return decodeString(fields[name])
}

// Resources is the part of the gateway that reads user interfaces, and makes their calls.
type Resources interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	Offers() []catalog.UpstreamOffer
}

// interfaces serves the user interfaces of tools to clients of the two tools.
type interfaces struct {
	resources Resources
	tools     *Tools
	views     views.Views
}

// read reads the user interface of a tool, by the URI in a link.
func (i *interfaces) read(ctx context.Context, req mcp.Request) (mcp.Result, error) {
	shown := decodeMember(paramsOf(req), "uri")
	upstream, wire, ok := mcpapp.SplitURI(shown)
	if !ok {
		return nil, unknownResource(encode(shown))
	}
	inner, cancel := detach(ctx)
	defer cancel()
	call := tool.Call{Tool: tool.ID{Upstream: upstream, Name: tool.ReadResource}, Args: encode(object{"uri": encode(wire)})}
	raw, err := rawAnswer(i.resources.Call(inner, call))
	if err == nil {
		i.views.Read(string(taskCaller(ctx)), upstream)
		raw = interfaceURIs(upstream).replace(tool.ReadResource, raw)
	}
	return toResponse(ctx, tool.ReadResource, isModernRequest(req), raw, err)
}

// interfaceURIs replaces the URIs of an upstream's interfaces only: clients of the two tools read no other resources.
func interfaceURIs(upstream string) resultURIs {
	return resultURIs{func(wire string) string {
		if uri, ok := mcpapp.ShownURI(upstream, wire); ok {
			return uri
		}
		return wire
	}}
}

// call makes a call that a client passes on from an interface. ok is false if it is none.
func (i *interfaces) call(ctx context.Context, req mcp.Request) (result mcp.Result, ok bool, err error) {
	called, typed := req.(*mcp.CallToolRequest)
	if !typed {
		return nil, false, nil
	}
	id, ok := i.views.Tool(string(taskCaller(ctx)), called.Params.Name, i.resources.Offers())
	if !ok {
		return nil, false, nil
	}
	raw, err := i.tools.newRequest(ctx, called).forward(ctx, i.resources, tool.Call{Tool: id, Args: called.Params.Arguments})
	if err == nil {
		raw = interfaceURIs(id.Upstream).replace("tools/call", raw)
	}
	result, err = toResponse(ctx, "tools/call", isModernRequest(req), raw, err)
	return result, true, err
}

// forward makes a call of an upstream's tool. Requests of the upstream go to the client and name it.
func (r *request) forward(ctx context.Context, resources Resources, call tool.Call) (json.RawMessage, error) {
	defer r.client.out.Flush()
	do := func(ctx context.Context, peer tool.Peer) (any, error) {
		call.Peer = attributedPeer{peer, call.Tool.Upstream}
		return rawAnswer(resources.Call(ctx, call))
	}
	var result any
	var err error
	if r.client.modern {
		params := object{"name": encode(r.Params.Name), "arguments": orEmptyObject(call.Args), "requestState": encode(r.Params.RequestState), "inputResponses": encode(r.Params.InputResponses)}
		result, err = r.pending.callOrResume(ctx, r.client, "tools/call", params, do)
	} else {
		inner, cancel := detach(ctx)
		defer cancel()
		result, err = do(inner, r.client)
	}
	if asked, ok := result.(inputRequired); ok {
		return asked.raw(), err
	}
	raw, _ := result.(json.RawMessage)
	return raw, err
}

// declareResources adds the capability to read resources to the result of a handshake.
func declareResources(result mcp.Result) {
	switch result := result.(type) {
	case *mcp.InitializeResult:
		result.Capabilities.Resources = &mcp.ResourceCapabilities{}
	case *mcp.DiscoverResult:
		result.Capabilities.Resources = &mcp.ResourceCapabilities{}
	}
}
