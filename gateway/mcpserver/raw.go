package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/stream"
)

// The SDK decodes messages of a client into its own types and encodes responses
// from them. That loses integers over 2^53, unknown members and blocks of unknown
// types. Direct mode must not lose any of them, so the bytes bypass the types: an
// incoming message is annotated with a copy of itself, as a string in its _meta
// (which every type of the SDK keeps), and an outgoing message has a type of this
// package that encodes to the given bytes.

// rawKey is the member of _meta with the bytes. It is always set or removed
// here, so a client's own value never has an effect.
const rawKey = "sallyport/raw"

// rawResult is a result that is written as it is.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON returns the bytes.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// rawParams are params that are written as they are.
type rawParams struct {
	mcp.ParamsBase
	raw json.RawMessage
}

// MarshalJSON returns the bytes.
func (p *rawParams) MarshalJSON() ([]byte, error) { return p.raw, nil }

type paramsKey struct{}

// withParams makes the next message that the SDK sends with ctx carry these params instead of its own.
func withParams(ctx context.Context, params json.RawMessage) context.Context {
	return context.WithValue(ctx, paramsKey{}, params)
}

// sendRaw is the middleware that replaces the params of a message by those in its context.
func sendRaw(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := ctx.Value(paramsKey{}).(json.RawMessage)
		session, server := req.GetSession().(*mcp.ServerSession)
		if ok && server {
			req = &mcp.ServerRequest[*rawParams]{Session: session, Params: &rawParams{raw: params}}
		}
		return next(ctx, method, req)
	}
}

// rawOf returns the bytes of an annotated message from its _meta.
func rawOf(meta map[string]any) (json.RawMessage, bool) {
	raw, ok := meta[rawKey].(string)
	return json.RawMessage(raw), ok
}

// object is a JSON object with its members as they were sent.
type object = map[string]json.RawMessage

// annotate adds its own bytes to a message of a client, or to each of a batch.
// Anything else is returned unchanged, for the SDK to reject.
func annotate(message []byte) []byte {
	trimmed := bytes.TrimSpace(message)
	if len(trimmed) > 0 && trimmed[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(trimmed, &batch) != nil {
			return message
		}
		for i := range batch {
			batch[i] = annotate(batch[i])
		}
		return encode(batch)
	}
	var fields object
	if json.Unmarshal(trimmed, &fields) != nil || fields == nil {
		return message
	}
	if params, ok := fields["params"]; ok {
		fields["params"] = annotateParams(params)
	}
	if result, ok := fields["result"]; ok {
		fields["result"] = annotateResult(result)
	}
	return encode(fields)
}

// annotateParams also removes the members that only an upstream understands: the
// SDK would reject a request for a member that it does not know.
func annotateParams(params json.RawMessage) json.RawMessage {
	var fields object
	if json.Unmarshal(params, &fields) != nil || fields == nil {
		return params
	}
	delete(fields, "inputResponses")
	delete(fields, "requestState")
	if fields["_meta"] = attachRaw(fields["_meta"], params); fields["_meta"] == nil {
		return params // its _meta is not an object
	}
	return encode(fields)
}

// annotateResult replaces a client's result by one that decodes into each result
// type of the SDK and has the original bytes.
func annotateResult(result json.RawMessage) json.RawMessage {
	var fields object
	if json.Unmarshal(result, &fields) != nil || fields == nil {
		return result
	}
	neutral := object{"_meta": attachRaw(nil, result), "action": encode("accept"), "roots": json.RawMessage("[]")}
	if _, sampled := fields["role"]; sampled {
		neutral["content"] = json.RawMessage("[]")
	}
	return encode(neutral)
}

// attachRaw adds raw to a _meta; it returns nil if meta is not an object.
func attachRaw(meta, raw json.RawMessage) json.RawMessage {
	fields := object{}
	if len(meta) > 0 && (json.Unmarshal(meta, &fields) != nil || fields == nil) {
		return nil
	}
	fields[rawKey] = encode(string(raw))
	return encode(fields)
}

// encode encodes values that consist of JSON and strings, which cannot fail.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(buf.Bytes())
}

// rawTransport is a transport that annotates each incoming message with its bytes.
type rawTransport struct{ mcp.Transport }

// Connect implements [mcp.Transport].
func (t rawTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return rawConn{conn}, nil
}

type rawConn struct{ mcp.Connection }

// Write implements [mcp.Connection].
func (c rawConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if sent, ok := msg.(*jsonrpc.Request); ok && !sent.IsCall() {
		sent.Method, sent.Params = stream.RenameTask(sent.Method, sent.Params)
	}
	return c.Connection.Write(ctx, msg)
}

// Read implements [mcp.Connection].
func (c rawConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if len(msg.Params) > 0 {
			msg.Params = annotateParams(msg.Params)
		}
	case *jsonrpc.Response:
		if len(msg.Result) > 0 {
			msg.Result = annotateResult(msg.Result)
		}
	}
	return msg, err
}
