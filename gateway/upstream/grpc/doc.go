// Package grpc turns a gRPC server into tools: [Load] asks it for its services by reflection (v1, else v1alpha), or reads a
// descriptor set, and makes a tool of each method; [API.Call] calls one, and [API.Serve] is the server as an MCP server in
// this process. Messages are written in JSON as protojson does.
//
// A method with one response returns that message; one that streams responses returns the first of them as a list.
// Methods that stream requests are no tools.
//
// Every byte of a descriptor and of a response is untrusted. limits.go says how large they may be, and weigh.go counts
// what a message would become before it is decoded, because few bytes can be many values.
//
//   - load.go reads descriptors from a file, reflect.go those of a server, files.go links them;
//   - method.go names and describes the methods, schema.go and wellknown.go make the schemas of messages;
//   - call.go calls a method, transport.go sends its request, failure.go explains errors.
package grpc
