package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/catalog"
	"sallyport/internal/jsonedit"
	"sallyport/internal/mcpapp"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// forward sends one request to its upstream and returns the result.
func (d *Direct) forward(ctx context.Context, r *roster, method string, req mcp.Request) (mcp.Result, error) {
	var params object
	if json.Unmarshal(paramsOf(req), &params) != nil || params == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params must be an object"}
	}
	return d.forwardParams(ctx, r, method, req, params)
}

// forwardParams is forward with other parameters.
func (d *Direct) forwardParams(ctx context.Context, r *roster, method string, req mcp.Request, params object) (mcp.Result, error) {
	if method == "tools/call" && len(r.appTools) > 0 && showsApps(req) {
		params = r.appCall(params)
	}
	call, err := route(r, method, params)
	if err != nil { // its upstream may not have been tried yet
		if call, err = route(d.awaitRoster(ctx, upstreamOf(d.gateway.Offers(), params)), method, params); err != nil {
			return nil, err
		}
	}
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, errors.New("no session")
	}
	call.KeepsTasks = keepsTasks(req)
	c := newClient(ctx, session, params, req)
	defer c.out.Flush()
	d.shared.logLevel.raise(c.level)
	d.sendLevel(ctx, d.roster.Load().capabilitiesOf(call.Tool.Upstream))
	var raw json.RawMessage
	if c.modern {
		raw, err = d.callModern(ctx, c, method, params, call)
	} else {
		call.Peer = d.attributePeer(c, call)
		raw, err = rawAnswer(d.call(ctx, call))
	}
	if err == nil {
		raw, err = d.newTask(ctx, call, d.roster.Load().shownResult(call, decodeString(params["uri"]), raw))
	}
	return toResponse(ctx, method, c.modern, raw, err)
}

// upstreamOf returns the upstream whose ID prefixes the name or URI in a request, "" for none.
func upstreamOf(offers []catalog.UpstreamOffer, params object) string {
	uri := decodeString(params["uri"])
	if upstream, _, ok := mcpapp.SplitURI(uri); ok {
		return upstream
	}
	name := cmp.Or(decodeString(params["name"]), strings.TrimPrefix(uri, uriPrefix))
	for _, up := range offers {
		if rest, ok := strings.CutPrefix(name, up.ID); ok && (strings.HasPrefix(rest, "__") || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "/")) {
			return up.ID
		}
	}
	return ""
}

// callModern makes a call for a modern client, or resumes a pending one.
func (d *Direct) callModern(ctx context.Context, c *client, method string, params object, call tool.Call) (json.RawMessage, error) {
	result, err := d.pending.callOrResume(ctx, c, method, params, func(ctx context.Context, peer tool.Peer) (any, error) {
		call.Peer, call.Rounds = d.attributePeer(peer, call), true
		call.Params = unwrapState(call.Params)
		raw, err := rawAnswer(d.gateway.Call(ctx, call))
		return d.attributeRequests(wrapState(raw), call), err
	})
	if asked, ok := result.(inputRequired); ok {
		return asked.raw(), err
	}
	raw, _ := result.(json.RawMessage)
	return raw, err
}

func (d *Direct) call(ctx context.Context, call tool.Call) (tool.Result, error) {
	ctx, cancel := detach(ctx)
	defer cancel()
	return d.gateway.Call(ctx, call)
}

// rawAnswer returns the raw result of a call; an empty one is an error.
func rawAnswer(result tool.Result, err error) (json.RawMessage, error) {
	if err == nil && len(result.Raw) == 0 {
		err = &tool.Error{Kind: tool.Upstream, Message: "the upstream sent an empty result"}
	}
	return result.Raw, err
}

// route returns the upstream call that a request is for.
func route(r *roster, method string, params object) (tool.Call, error) {
	rest := maps.Clone(params)
	call := tool.Call{Params: rest}
	switch method {
	case "tools/call":
		id, err := resolveName("tool", params["name"], r.tools, r.toolIDs)
		if err != nil {
			return call, err
		}
		call.Tool, call.Args = id, params["arguments"]
		delete(rest, "name")
		delete(rest, "arguments")
	case tool.GetPrompt:
		id, err := resolveName("prompt", params["name"], r.prompts, r.promptIDs)
		if err != nil {
			return call, err
		}
		args := object{"name": encode(id.Name)}
		moveMember(args, rest, "arguments")
		delete(rest, "name")
		call.Tool, call.Args = tool.ID{Upstream: id.Upstream, Name: method}, encode(args)
	case tool.ReadResource:
		upstream, wire, ok := r.resourceUpstream(decodeString(params["uri"]))
		if !ok {
			return call, unknownResource(params["uri"])
		}
		delete(rest, "uri")
		call.Tool, call.Args = tool.ID{Upstream: upstream, Name: method}, encode(object{"uri": encode(wire)})
	case tool.Complete:
		return routeCompletion(r, params)
	}
	removeHopByHop(rest)
	return call, nil
}

// routeCompletion returns the call for a completion request, with the upstream's own name or URI as reference.
func routeCompletion(r *roster, params object) (tool.Call, error) {
	var ref struct{ Type, Name, URI string }
	if json.Unmarshal(params["ref"], &ref) != nil {
		return tool.Call{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "ref must be an object"}
	}
	args, rest := maps.Clone(params), object{}
	call := tool.Call{Params: rest}
	moveMember(rest, args, "_meta")
	switch ref.Type {
	case "ref/prompt":
		id, ok := r.prompts[ref.Name]
		if !ok {
			return call, unknownName("prompt", encode(ref.Name), r.prompts)
		}
		call.Tool.Upstream, args["ref"] = id.Upstream, replaceMember(params["ref"], "name", encode(id.Name))
	default:
		upstream, wire, ok := r.templateUpstream(ref.URI)
		if !ok {
			return call, unknownResource(encode(ref.URI))
		}
		call.Tool.Upstream, args["ref"] = upstream, replaceMember(params["ref"], "uri", encode(wire))
	}
	if !hasCompletions(r.capabilitiesOf(call.Tool.Upstream)) {
		return call, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the upstream does not support completion"}
	}
	call.Tool.Name, call.Args = tool.Complete, encode(args)
	removeHopByHop(rest)
	return call, nil
}

// moveMember moves a member from one object to another, if it is present.
func moveMember(to, from object, name string) {
	if value, ok := from[name]; ok {
		to[name] = value
		delete(from, name)
	}
}

// removeHopByHop removes the hop-by-hop members from a request's _meta: of the protocol's
// members only the client's capabilities are forwarded, since they bound what an
// upstream may request.
func removeHopByHop(params object) {
	var meta object
	if json.Unmarshal(params["_meta"], &meta) != nil {
		return
	}
	delete(meta, mcp.MetaKeyProtocolVersion)
	delete(meta, mcp.MetaKeyClientInfo)
	delete(meta, rawKey)
	if len(meta) == 0 {
		delete(params, "_meta")
		return
	}
	params["_meta"] = encode(meta)
}

func decodeString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// resolveName finds a tool or a prompt by the name that clients see, else by its id.
func resolveName(what string, name json.RawMessage, shown, ids map[string]tool.ID) (tool.ID, error) {
	if id, ok := shown[decodeString(name)]; ok {
		return id, nil
	}
	if id, ok := ids[decodeString(name)]; ok {
		return id, nil
	}
	if strings.Contains(decodeString(name), ".") && !strings.Contains(decodeString(name), "__") {
		shown = ids
	}
	return tool.ID{}, unknownName(what, name, shown)
}

func unknownName(what string, name json.RawMessage, known map[string]tool.ID) error {
	message := fmt.Sprintf("unknown %s %q", what, sanitize.Line(decodeString(name), 150))
	if near := suggest.Of(decodeString(name), slices.Sorted(maps.Keys(known))); near != "" {
		message += "; did you mean " + sanitize.Line(near, 150) + "?"
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

func unknownResource(uri json.RawMessage) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Resource not found", Data: encode(object{"uri": encode(decodeString(uri))})}
}

// toResponse turns the outcome of a call into the SDK's result. A result or error of the
// upstream is returned unchanged; for a tool, any other failure becomes a result that
// a model can read.
func toResponse(ctx context.Context, method string, isModern bool, raw json.RawMessage, err error) (mcp.Result, error) {
	if err == nil {
		if isModern {
			raw, err = addModernMembers(method, raw)
		}
		return &rawResult{raw: raw}, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if theirs, ok := errors.AsType[*jsonrpc.Error](err); ok && theirs.Code != codeNotSent {
		return nil, theirs
	}
	e := tool.AsError(err)
	code, refused := errorCodes()[e.Kind]
	if method == "tools/call" && (!refused || e.Kind == tool.Invalid) {
		result := errorResult(e)
		result.Meta = mcp.Meta{tool.MetaError: map[string]any{"kind": e.Kind, "message": e.Message, "hint": e.Hint, "retryable": e.Retryable}}
		return complete(isModern, result), nil
	}
	if !refused {
		code = jsonrpc.CodeInternalError
	}
	return nil, &jsonrpc.Error{Code: code, Message: e.Error()}
}

// complete adds to a result of the gateway itself the members that a modern client requires, which the SDK adds only to the
// results of its own handlers. Other results stay as they are.
func complete(isModern bool, result mcp.Result) mcp.Result {
	own, ok := result.(*mcp.CallToolResult)
	if !ok || !isModern {
		return result
	}
	raw, err := addModernMembers("tools/call", encode(own))
	if err != nil {
		return result
	}
	return &rawResult{raw: raw}
}

// codeNotSent is the SDK's own code for a message that its transport refused.
const codeNotSent = -32005

// errorCodes maps the kinds of failure that are the request's fault to the protocol's codes.
func errorCodes() map[tool.Kind]int64 {
	return map[tool.Kind]int64{tool.Invalid: jsonrpc.CodeInvalidParams, tool.NotFound: jsonrpc.CodeInvalidParams}
}

// addModernMembers adds to a legacy upstream's result the members that a modern client requires.
func addModernMembers(method string, raw json.RawMessage) (json.RawMessage, error) {
	var has object
	if json.Unmarshal(raw, &has) != nil {
		return nil, &tool.Error{Kind: tool.Upstream, Message: "the upstream's result is not a JSON object"}
	}
	missing := modernMembers(method == tool.ReadResource)
	for name := range has {
		delete(missing, name)
	}
	if _, typed := has["resultType"]; typed && decodeString(has["resultType"]) != "complete" {
		return raw, nil
	}
	if len(missing) == 0 {
		return raw, nil
	}
	return jsonedit.Edit(raw, missing)
}
