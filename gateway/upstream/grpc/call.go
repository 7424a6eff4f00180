package grpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

// Call calls a tool and returns the result of tools/call. A status of the server that is not OK is a result with isError. The error is a
// [*webapi.ArgumentError], or that of the transport.
func (a *API) Call(ctx context.Context, name string, raw json.RawMessage) (json.RawMessage, error) {
	m := a.methods[name]
	if m == nil {
		return nil, webapi.Invalid("there is no tool %.80q", name)
	}
	raw, limit, err := m.arguments(raw)
	if err != nil {
		return nil, err
	}
	request, err := a.files.encode(m.of.Input(), raw)
	if err != nil {
		return nil, err
	}
	client := connect.NewClient[frame, frame](a.client, strings.TrimSuffix(a.opts.Endpoint, "/")+"/"+m.path(),
		connect.WithGRPC(), connect.WithCodec(frames{}), connect.WithReadMaxBytes(int(a.opts.MaxResponse)))
	var result json.RawMessage
	if m.result == asList {
		result, err = a.callStream(ctx, client, m, request, limit)
	} else {
		result, err = a.callUnary(ctx, client, m, request)
	}
	if err != nil {
		return a.failure(ctx, err)
	}
	return result, nil
}

func (a *API) callUnary(ctx context.Context, client *connect.Client[frame, frame], m *method, request frame) (json.RawMessage, error) {
	resp, err := client.CallUnary(ctx, connect.NewRequest(&request))
	if err != nil {
		return nil, err
	}
	data, err := a.files.decode(a.newScale(), m.of.Output(), *resp.Msg)
	if err != nil {
		return unreadable(m, err), nil
	}
	return webapi.JSONResult(data, m.result == wrapped), nil
}

// callStream returns the first messages of a stream: as many as the call asks for, and as fit.
func (a *API) callStream(ctx context.Context, client *connect.Client[frame, frame], m *method, request frame, limit int) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.CallServerStream(ctx, connect.NewRequest(&request))
	if err != nil {
		return nil, err
	}
	defer func() {
		cancel() // so that closing does not read the rest of the stream
		_ = stream.Close()
	}()
	scale, messages, left := a.newScale(), []any{}, a.opts.MaxResponse
	for stream.Receive() {
		left -= int64(len(*stream.Msg()))
		if len(messages) == limit || left < 0 {
			return streamResult(messages, true), nil
		}
		data, err := a.files.decode(scale, m.of.Output(), *stream.Msg())
		if errors.Is(err, errTooLarge) && len(messages) > 0 {
			return streamResult(messages, true), nil
		}
		if err != nil {
			return unreadable(m, err), nil
		}
		messages = append(messages, data)
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return streamResult(messages, false), nil
}

func streamResult(messages []any, truncated bool) json.RawMessage {
	return webapi.JSONResult(webapi.AppendJSON(nil, jsonobject.Of("messages", messages, "truncated", truncated)), false)
}

func (a *API) newScale() *scale { return newScale(maxValues, a.opts.MaxResponse, a.files.types) }

// unreadable returns the result of a call with a response that cannot be shown.
func unreadable(m *method, err error) json.RawMessage {
	text := fmt.Sprintf("the response is not a %s: %s", m.of.Output().FullName(), cause(err))
	if errors.Is(err, errTooLarge) {
		text = fmt.Sprintf("the response has more than %d values or is too large; ask for less: a page, a filter, fewer fields", maxValues)
	}
	return webapi.Failed(text)
}

// sooner is how much earlier than here a server may reach the deadline of a call, at which it resets the stream.
const sooner = 100 * time.Millisecond

// failure returns what an error of a call is: a status of the server is a result, any other is of the transport.
func (a *API) failure(ctx context.Context, err error) (json.RawMessage, error) {
	code := connect.CodeOf(err)
	if at, ok := ctx.Deadline(); ok && time.Until(at) < sooner && !connect.IsWireError(err) && (code == connect.CodeCanceled || code == connect.CodeDeadlineExceeded) {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if e, ok := errors.AsType[*transportError](err); ok {
		return nil, e.cause
	}
	if e, ok := errors.AsType[*refusal](err); ok {
		return webapi.Failed(e.text), nil
	}
	if connect.IsWireError(err) {
		return webapi.Failed(a.explain(err)), nil
	}
	if code == connect.CodeResourceExhausted {
		return webapi.Failed(fmt.Sprintf("the response has more than %d bytes; ask for less: a page, a filter, fewer fields", a.opts.MaxResponse)), nil
	}
	return nil, errors.New(sanitize.Line(describeError(err), 500))
}

// arguments returns the JSON of the request, and how many messages of a stream to return.
func (m *method) arguments(raw json.RawMessage) (json.RawMessage, int, error) {
	args, err := apitools.Arguments(raw, maxNesting)
	if err != nil {
		return nil, 0, err
	}
	limit := defaultStreamed
	if m.count != "" && args.Get(m.count) != nil {
		n, _ := args.Get(m.count).(json.Number)
		if limit, err = strconv.Atoi(string(n)); err != nil || limit < 1 || limit > maxStreamed {
			return nil, 0, webapi.Invalid("%s must be a number from 1 to %d", m.count, maxStreamed)
		}
	}
	if m.count != "" {
		args.Remove(m.count)
	}
	if m.whole == "" {
		return webapi.AppendJSON(nil, args), limit, nil
	}
	if !args.Has(m.whole) || len(args.Keys()) > 1 {
		return nil, 0, webapi.Invalid("the arguments must be %s", m.whole)
	}
	return webapi.AppendJSON(nil, args.Get(m.whole)), limit, nil
}

// encode returns the encoding of a message in JSON.
func (f *files) encode(of protoreflect.MessageDescriptor, data json.RawMessage) (frame, error) {
	m := dynamicpb.NewMessage(of)
	err := protojson.UnmarshalOptions{Resolver: f.types, RecursionLimit: maxNesting}.Unmarshal(data, m)
	var encoded []byte
	if err == nil {
		encoded, err = proto.Marshal(m)
	}
	if err != nil {
		return nil, webapi.Invalid("%s", cause(err))
	}
	return encoded, nil
}

// decode returns a message in JSON. The message is untrusted, so a panic of the libraries is an error.
func (f *files) decode(s *scale, of protoreflect.MessageDescriptor, data []byte) (text json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			text, err = nil, errMalformed
		}
	}()
	if err := s.message(of, data, 0); err != nil {
		return nil, err
	}
	m := dynamicpb.NewMessage(of)
	if err := (proto.UnmarshalOptions{Resolver: f.types, RecursionLimit: maxNesting + 1, DiscardUnknown: true, AllowPartial: true}).Unmarshal(data, m); err != nil {
		return nil, err
	}
	text, err = protojson.MarshalOptions{Resolver: lenient{f.types}, EmitDefaultValues: true, AllowPartial: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Compact(&b, text) // protojson writes spaces at random
	return b.Bytes(), err
}

// cause returns the reason of an error of the libraries.
func cause(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ") // they write it at random
	return sanitize.Line(strings.ToValidUTF8(strings.TrimPrefix(text, "proto: "), "\uFFFD"), 300)
}

// frame is an encoded message.
type frame []byte

// frames is a codec of encoded messages, which are decoded when their method is known.
type frames struct{}

// Name implements [connect.Codec].
func (frames) Name() string { return "proto" }

// Marshal implements [connect.Codec].
func (frames) Marshal(m any) ([]byte, error) {
	if f, ok := m.(*frame); ok {
		return *f, nil
	}
	return proto.Marshal(m.(proto.Message))
}

// Unmarshal implements [connect.Codec]. The library uses data again.
func (frames) Unmarshal(data []byte, m any) error {
	if f, ok := m.(*frame); ok {
		*f = slices.Clone(data)
		return nil
	}
	return proto.UnmarshalOptions{RecursionLimit: maxNesting}.Unmarshal(data, m.(proto.Message)) // the status
}
