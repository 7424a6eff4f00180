package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// What a [Call] can ask of an upstream besides a tool: one of these stands in
// place of the tool's name. A tool's name is an identifier, so none has a slash.
const (
	ListResources = "resources/list"           // answered from the catalog
	ListTemplates = "resources/templates/list" // answered from the catalog
	ReadResource  = "resources/read"           // Args: {"uri": string}
	ListPrompts   = "prompts/list"             // answered from the catalog
	GetPrompt     = "prompts/get"              // Args: {"name": string, "arguments": {string: string}}
	Complete      = "completion/complete"      // Args: the request's params
	Subscribe     = "resources/subscribe"      // Args: {"uri": string}
	Unsubscribe   = "resources/unsubscribe"    // Args: {"uri": string}
	SetLogLevel   = "logging/setLevel"         // Args: {"level": string}
)

// Method returns the protocol's method that the id asks for: tools/call, unless
// its name is one of the methods above.
func (id ID) Method() string {
	if strings.Contains(id.Name, "/") {
		return id.Name
	}
	return "tools/call"
}

func isMethod(name string) bool {
	switch name {
	case ListResources, ListTemplates, ReadResource, ListPrompts, GetPrompt, Complete, Subscribe, Unsubscribe, SetLogLevel:
		return true
	}
	return false
}

// Call asks for one run of a tool, or for one of the methods above.
type Call struct {
	Tool ID
	// Args is the JSON object of the arguments, by their names on the wire.
	Args json.RawMessage
	// Execution is the id of the execution that asks, "" where none does (CLI).
	Execution string
	// Params are further members of the request's params that go out as they are
	// in addition to Tool and Args (_meta, inputResponses, requestState);
	// nil for a program's call.
	Params map[string]json.RawMessage
	// Peer gets what the upstream says during the call, and is asked what the
	// upstream asks; nil for none.
	Peer Peer
	// Rounds says that the caller understands a result of resultType
	// "input_required" (MCP 2026-07-28) and makes the next round itself. Without
	// it the upstream's questions go to Peer.
	Rounds bool
	// Leaving is asked before the call is sent, each time that it is, with the definition that the upstream has of the
	// tool then; an error keeps it here. nil is asked nothing, nor is it for a method that is no tool.
	Leaving func(now Tool) error `json:"-"`
}

// ErrCannotAsk says of a [Peer] that it does not answer what it is asked, now or later.
var ErrCannotAsk = errors.New("it cannot be asked")

// Peer is the caller as the upstream sees it during the call. Its
// methods may be called from any goroutine until the call has returned.
type Peer interface {
	// Notify passes on a notification of the upstream that belongs to the call
	// (notifications/progress, notifications/message). It does not block.
	Notify(method string, params json.RawMessage)
	// Ask passes on a request of the upstream (elicitation/create,
	// sampling/createMessage, roots/list) and returns the result as it was sent.
	// An error says that there will be no answer; ErrCannotAsk, that there can be none.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}
