package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"sallyport/internal/sanitize"
)

// reflect asks the server for its services, and the descriptors of all files that they need.
func (a *API) reflect(ctx context.Context) (*descriptorpb.FileDescriptorSet, []protoreflect.FullName, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	codec := &reflectionCodec{scale: newScale(maxSetValues, maxSet, nil)}
	client := grpcreflect.NewClient(a.client, strings.TrimSuffix(a.opts.Endpoint, "/"), connect.WithGRPC(), connect.WithCodec(codec), connect.WithReadMaxBytes(maxReply))
	r := &reflection{stream: client.NewStream(ctx), known: map[string]bool{}, set: &descriptorpb.FileDescriptorSet{}}
	services, err := r.read()
	end := ctx.Err()
	cancel() // so that the server cannot delay the end
	_, _ = r.stream.Close()
	switch {
	case end != nil:
		return nil, nil, end
	case err != nil:
		return nil, nil, a.reflectionError(err)
	}
	return r.set, services, nil
}

// isCut reports whether a connection was made and then ended, as those to servers that expect TLS, or speak HTTP/1.1 only. What is
// noticed first differs.
func isCut(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return (!ok || dial.Op != "dial") && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// reflectionError returns the cause of a failure: that of the transport as it is.
func (a *API) reflectionError(err error) error {
	if e, ok := errors.AsType[*transportError](err); ok {
		if strings.HasPrefix(a.opts.Endpoint, "http:") && isCut(e.cause) {
			return fmt.Errorf("%w; does the server speak HTTP/2 without TLS? With TLS, its URL begins with https", e.cause)
		}
		return e.cause
	}
	if e, ok := errors.AsType[*refusal](err); ok {
		return errors.New(e.text)
	}
	if connect.CodeOf(err) == connect.CodeUnimplemented && connect.IsWireError(err) {
		return errors.New(`the server has no reflection: name the file of a descriptor set with "grpc" and the server with "url"`)
	}
	return errors.New(sanitize.Line(describeError(err), 500))
}

// reflection reads descriptors of a server.
type reflection struct {
	stream *grpcreflect.ClientStream
	known  map[string]bool // the files that are read or asked for
	set    *descriptorpb.FileDescriptorSet
}

func (r *reflection) read() ([]protoreflect.FullName, error) {
	all, err := r.stream.ListServices()
	if err != nil {
		return nil, err
	}
	if len(all) > maxServices {
		return nil, fmt.Errorf("it has more than %d services", maxServices)
	}
	var services []protoreflect.FullName
	for _, name := range all {
		if strings.HasPrefix(string(name), "grpc.reflection.") {
			continue
		}
		found, err := r.stream.FileContainingSymbol(name)
		if err != nil && grpcreflect.IsReflectionStreamBroken(err) {
			return nil, err
		}
		if err == nil {
			services = append(services, name)
			r.add(found)
		}
	}
	return services, r.imports()
}

// add keeps files that are new.
func (r *reflection) add(files []*descriptorpb.FileDescriptorProto) {
	for _, f := range files {
		if !r.known[f.GetName()] {
			r.known[f.GetName()] = true
			r.set.File = append(r.set.File, f)
		}
	}
}

// imports asks for the files that others import and that are missing. Those that the server does not have stay so.
func (r *reflection) imports() error {
	for i := 0; i < len(r.set.File); i++ {
		for _, name := range r.set.File[i].GetDependency() {
			if r.known[name] || isStandard(name) {
				continue
			}
			if len(r.known) >= maxFiles {
				return fmt.Errorf("its services need more than %d files", maxFiles)
			}
			found, err := r.stream.FileByFilename(name)
			if err != nil && grpcreflect.IsReflectionStreamBroken(err) {
				return err
			}
			r.add(found)
			r.known[name] = true
		}
	}
	return nil
}

// reflectionCodec decodes responses of reflection after it has counted the descriptors in them.
type reflectionCodec struct{ scale *scale }

// Name implements [connect.Codec].
func (*reflectionCodec) Name() string { return "proto" }

// Marshal implements [connect.Codec].
func (*reflectionCodec) Marshal(m any) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }

// Unmarshal implements [connect.Codec].
func (c *reflectionCodec) Unmarshal(data []byte, m any) error {
	err := fields(data, func(number protowire.Number, kind protowire.Type, value []byte) error {
		if kind != protowire.BytesType { // a part of the response is a message
			return nil
		}
		return fields(value, func(_ protowire.Number, _ protowire.Type, part []byte) error {
			if number != fileDescriptorResponse {
				return c.scale.add(1, int64(len(part)))
			}
			return c.scale.message((*descriptorpb.FileDescriptorProto)(nil).ProtoReflect().Descriptor(), part, 0)
		})
	})
	if errors.Is(err, errMalformed) { // a text, such as the host
		err = nil
	}
	if err != nil {
		return fmt.Errorf("the descriptors cannot be read: %w", err)
	}
	return proto.UnmarshalOptions{RecursionLimit: maxNesting}.Unmarshal(data, m.(proto.Message))
}

// fileDescriptorResponse is the field of a response of reflection that has files.
const fileDescriptorResponse = 4
