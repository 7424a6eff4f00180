// Package openapi turns the description of an HTTP API into tools: [Load] reads an
// OpenAPI document (2.0, 3.0 or 3.1, in JSON or YAML) and makes a tool of each
// operation, [API.Call] sends the request of a call, and [API.Serve] is the API as an MCP
// server in this process, so that a session treats it as any other upstream.
//
// Every byte of a document and of a response is untrusted. load.go says which files a
// document may refer to, limits.go how large it may be; a document beyond that is an
// error, an operation that cannot be a tool is left out.
//
//   - value.go and yaml.go parse documents, in the order of their members;
//   - load.go reads them, refs.go resolves references between them;
//   - operation.go and legacy.go read the operations of OpenAPI 3 and 2.0, server.go
//     decides where requests are sent, choose.go which operations become tools;
//   - schema.go and keywords.go convert schemas to JSON Schema, tool.go makes the
//     definitions of tools, names.go their names, describe.go their descriptions;
//   - request.go, style.go and body.go encode a call, result.go reads the response;
//   - serve.go speaks the protocol.
package openapi
