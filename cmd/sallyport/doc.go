/*
Sallyport is one MCP server in front of many: it finds their tools for a model and
runs the model's programs, which call those tools, in gVisor sandboxes.

This package is the command line: main.go is the process, root.go what all verbs
share, fault.go the errors and exit statuses, output.go the way to the terminal,
and every verb (serve, exec, search, tools, generate, doctor, upstreams, worker, auth,
import, install, backup, restore, top, man, version) has a file of its own. Nothing is decided here that a package
below could decide.

# A tour of the house

In the order of one call, from a client to a tool and back:

  - internal/config reads upstreams.yaml, strictly: which upstreams there are and
    what an execution may use.
  - internal/clients reads the settings of other clients into it (import), and puts
    our entry into theirs (install).
  - gateway/mcpserver is what MCP clients see, over stdio and HTTP: search_tools
    and execute_code, each a thin call of one of the gateway's verbs, or in direct
    mode what the upstreams themselves have.
  - gateway has these verbs (Search, Execute, Call), the catalog of all tools, and
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
  - internal/store keeps records and logs, internal/backup makes one file of it all.
  - internal/tool is the vocabulary of all of them, internal/sanitize makes untrusted
    text fit to be shown, internal/suggest finds what someone meant.

Imports run down only; internal/archtest holds everyone to that. docs/architecture.md
has the picture.
*/
package main
