/*
Sallyport is one MCP server in front of many: it finds their tools for a model and
runs the model's programs, which call those tools, in gVisor sandboxes.

This package is the command line: main.go is the process, root.go the root command.
The verbs are here and in the packages below internal/; internal/cli is what they
share: errors and exit statuses, output, settings, access to running gateways. The
logic is in the packages that the verbs call.

# Overview of the packages

In the order of one call, from a client to a tool and back:

  - internal/config reads upstreams.yaml, strictly: which upstreams there are and
    what an execution may use.
  - internal/clients reads the settings of other clients into it (import), and puts
    our entry into theirs (install).
  - gateway/mcpserver is what MCP clients see, over stdio and HTTP: search_tools
    and execute_code, each a thin call of one of the gateway's methods, or in direct
    mode the tools, resources and prompts of the upstreams.
  - gateway has these methods (Search, Execute, Call), the catalog of all tools, and
    the middleware that every call of a tool passes through.
  - index finds the tools that fit a model's words.
  - codegen turns tools into the servers/ tree, one typed function each in Python
    and TypeScript; codegen/bundle compiles a TypeScript program against it.
  - sandbox runs a program in gVisor with limits; sandbox/runsc drives the runtime,
    and codegen/runtime is what the program finds inside.
  - sandbox/bridge is the only way out: a call of a wrapper comes through its
    websocket and goes to gateway.Call.
  - gateway/trust holds back tools whose definition changed or misleads.
  - gateway/upstream holds one live session to each upstream, and makes the call;
    gateway/upstream/oauth has its logins.
  - internal/store stores records and logs, internal/backup backs up the data directory.
  - internal/tool has the types that all of them share, internal/sanitize makes
    untrusted text safe to show, internal/suggest finds the name that was meant.

Packages import only those below them, which internal/archtest checks. The diagram is
in docs/explanation/architecture.md.
*/
package main
