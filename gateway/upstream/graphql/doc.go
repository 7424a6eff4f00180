// Package graphql turns a GraphQL API into tools: [Load] reads its schema, by introspection or from a file, and makes a tool
// of each query and each mutation; [API.Call] sends the request of a call, and [API.Serve] is the API as an MCP server in this
// process. The source is the GraphQL specification of September 2025, and GraphQL over HTTP.
//
// A tool takes the arguments of its field, and a selection of the fields to return. Without one it returns the plain fields
// of the result, and the identifying ones of the objects in it.
//
// Every byte of a schema and of a response is untrusted. limits.go says how large they may be. The selection is written by
// a model: it is parsed by itself, and cannot add another query or mutation to the request.
//
//   - load.go reads schemas, introspection.go those that a server describes;
//   - operation.go makes the operations and names them, schema.go the schemas of arguments and results;
//   - selection.go chooses the fields to return, parse.go reads those of a call;
//   - call.go sends a request and reads the response, show.go shows a type to a model.
package graphql
