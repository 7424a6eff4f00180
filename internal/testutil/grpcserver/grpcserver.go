// Package grpcserver runs a gRPC server for tests, of google.golang.org/grpc: the services of shop.proto, and reflection.
// shop.binpb is what protoc --include_source_info writes of it, without the standard files.
package grpcserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/anypb" // the standard files that shop.proto imports
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"
)

// Key is the value of the metadata x-key that the server asks for.
const Key = "k-12345678"

// Descriptors is the descriptor set of the services.
//
//go:embed shop.binpb
var Descriptors []byte

// Options say what a server has. The zero value is without encryption, with reflection in both versions.
type Options struct {
	// Certificate is that of a server with TLS.
	Certificate *tls.Certificate
	// Clients are the authorities of clients, of which each needs a certificate; nil asks for none.
	Clients *x509.CertPool
	// Reflection names its versions, "v1" and "v1alpha"; nil is both.
	Reflection []string
}

func (o Options) secure() *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{*o.Certificate}, MinVersion: tls.VersionTLS12}
	if o.Clients != nil {
		config.ClientCAs, config.ClientAuth = o.Clients, tls.RequireAndVerifyClientCert
	}
	return config
}

// Server is a running server.
type Server struct {
	// Address is its host and port.
	Address string

	mu       sync.Mutex
	seen     []metadata.MD
	deadline bool // the last request had a deadline
	files    *protoregistry.Files
}

// Start runs a server until the test ends.
func Start(tb testing.TB, opts Options) *Server {
	tb.Helper()
	files, err := linked()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{files: files}
	settings := []grpc.ServerOption{grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream)}
	if opts.Certificate != nil {
		settings = append(settings, grpc.Creds(credentials.NewTLS(opts.secure())))
	}
	server := grpc.NewServer(settings...)
	s.register(server)
	s.reflect(server, opts.Reflection)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.Address = listener.Addr().String()
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	tb.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	return s
}

// URL returns the URL of a server without encryption.
func (s *Server) URL() string { return "http://" + s.Address }

// linked returns the descriptors of the services, with the standard files.
func linked() (*protoregistry.Files, error) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(Descriptors, set); err != nil {
		return nil, err
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("google.protobuf", func(f protoreflect.FileDescriptor) bool {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
		return true
	})
	return protodesc.NewFiles(set)
}

// Requests returns the metadata of the requests of methods, and whether the last had a deadline.
func (s *Server) Requests() ([]metadata.MD, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen, s.deadline
}

func (s *Server) check(ctx context.Context, method string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(method, "ServerReflection") {
		s.seen = append(s.seen, md)
		_, s.deadline = ctx.Deadline()
	}
	if got := md.Get("x-key"); len(got) != 1 || got[0] != Key {
		return status.Error(codes.Unauthenticated, "the metadata x-key is wrong")
	}
	return nil
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := s.check(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := s.check(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}

// GetServiceInfo returns the services, for reflection.
func (s *Server) GetServiceInfo() map[string]grpc.ServiceInfo {
	return map[string]grpc.ServiceInfo{"shop.v1.Orders": {}, "shop.v1.Archive": {}}
}

func (s *Server) reflect(server *grpc.Server, versions []string) {
	opts := reflection.ServerOptions{Services: s, DescriptorResolver: s.files}
	if versions == nil {
		versions = []string{"v1", "v1alpha"}
	}
	for _, v := range versions {
		switch v {
		case "v1":
			reflectionv1.RegisterServerReflectionServer(server, reflection.NewServerV1(opts))
		case "v1alpha":
			reflectionv1alpha.RegisterServerReflectionServer(server, reflection.NewServer(opts))
		}
	}
}

// register registers the services, each method by its name.
func (s *Server) register(server *grpc.Server) {
	for _, name := range []protoreflect.FullName{"shop.v1.Orders", "shop.v1.Archive"} {
		found, err := s.files.FindDescriptorByName(name)
		if err != nil {
			panic(err) // shop.binpb has them
		}
		desc := &grpc.ServiceDesc{ServiceName: string(name), HandlerType: (*any)(nil)}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			if m.IsStreamingServer() || m.IsStreamingClient() {
				desc.Streams = append(desc.Streams, grpc.StreamDesc{StreamName: string(m.Name()), Handler: s.list(m), ServerStreams: true})
				continue
			}
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: string(m.Name()), Handler: s.handler(m)})
		}
		server.RegisterService(desc, s)
	}
}

func (s *Server) handler(m protoreflect.MethodDescriptor) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := dynamicpb.NewMessage(m.Input())
		if err := decode(req); err != nil {
			return nil, err
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + string(m.Parent().FullName()) + "/" + string(m.Name())}
		return interceptor(ctx, req, info, func(ctx context.Context, _ any) (any, error) { return s.answer(ctx, m, req) })
	}
}

// answer answers a method with one response.
func (s *Server) answer(ctx context.Context, m protoreflect.MethodDescriptor, req *dynamicpb.Message) (any, error) {
	out := dynamicpb.NewMessage(m.Output())
	switch m.Name() {
	case "GetOrder", "getOrder":
		id := get(req, "id").Int()
		if id == 404 {
			return nil, status.Errorf(codes.NotFound, "there is no order %d", id)
		}
		set(out, "id", protoreflect.ValueOfInt64(id))
		set(out, "customer_name", protoreflect.ValueOfString("ann"))
	case "SaveOrder":
		return req, nil
	case "Fail":
		return nil, failure(req)
	case "Version":
		set(out, "value", protoreflect.ValueOfString("1.2"))
	case "Wait":
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case "Old":
		return structpb.NewStruct(map[string]any{"old": true})
	}
	return out, nil
}

// failure returns the status that a request asks for.
func failure(req *dynamicpb.Message) error {
	st := status.New(codes.Code(get(req, "code").Int()), get(req, "message").String())
	if get(req, "details").Bool() {
		item := dynamicpb.NewMessage(req.Descriptor().ParentFile().Messages().ByName("Item"))
		set(item, "name", protoreflect.ValueOfString("pen"))
		with, err := st.WithDetails(item, structpb.NewStringValue("because"))
		if err != nil {
			return err
		}
		st = with
	}
	return st.Err()
}

// list streams orders until there are as many as asked for.
func (s *Server) list(m protoreflect.MethodDescriptor) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) error {
		if m.IsStreamingClient() {
			return errors.New("not for these tests")
		}
		req := dynamicpb.NewMessage(m.Input())
		if err := stream.RecvMsg(req); err != nil {
			return err
		}
		note := strings.Repeat("n", int(get(req, "size").Int()))
		for i := range get(req, "count").Int() {
			out := dynamicpb.NewMessage(m.Output())
			set(out, "id", protoreflect.ValueOfInt64(i+1))
			if note != "" {
				set(out, "note", protoreflect.ValueOfString(note))
			}
			if err := stream.SendMsg(out); err != nil {
				return err
			}
		}
		return nil
	}
}

func get(m *dynamicpb.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

func set(m *dynamicpb.Message, name protoreflect.Name, v protoreflect.Value) {
	m.Set(m.Descriptor().Fields().ByName(name), v)
}
