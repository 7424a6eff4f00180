package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// The methods besides tools/call that a [Call] can be for: one of these replaces the tool's name. A tool's name is an
// identifier, so it has no slash.
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

// The methods about a task that a call became, for a [Call] with KeepsTasks. [ParseID] rejects them: only a caller that was given the
// task may make them.
const (
	GetTask    = "tasks/get"    // Args: {"taskId": string}
	UpdateTask = "tasks/update" // Args: {"taskId": string, "inputResponses": object}
	CancelTask = "tasks/cancel" // Args: {"taskId": string}
)

// IsTaskMethod reports whether a method is about a task.
func IsTaskMethod(method string) bool {
	return method == GetTask || method == UpdateTask || method == CancelTask
}

// Method returns the protocol's method of the id: tools/call, unless its name is one of the methods above.
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

// Call is a call of a tool, or of one of the methods above.
type Call struct {
	Tool ID
	// Args is the JSON object of the arguments, by their names on the wire.
	Args json.RawMessage
	// Execution is the id of the calling execution, "" for none (CLI).
	Execution string
	// Params are further members of the request's params that are sent unchanged in addition to Tool and Args (_meta,
	// inputResponses, requestState); nil for a program's call.
	Params map[string]json.RawMessage
	// Peer receives the upstream's notifications and requests during the call; nil for none.
	Peer Peer
	// Rounds means that the caller understands a result of resultType "input_required" (MCP 2026-07-28) and makes the
	// next round itself. Otherwise the upstream's requests go to Peer.
	Rounds bool
	// KeepsTasks means that the caller understands a result of resultType "task" (the extension of MCP 2026-07-28) and asks for the
	// task's state itself. Otherwise the result of the task is waited for.
	KeepsTasks bool `json:"-"`
	// BeforeSend is called before each attempt to send the call, with the upstream's current definition of the tool; an
	// error stops the call. It may be nil, and is not called for other methods.
	BeforeSend func(now Tool) error `json:"-"`
	// OnTask is called with the id of the task that the call becomes at the upstream, before its result is waited for. It may be nil.
	OnTask func(id string) `json:"-"`
	// Task is the id of the task that an equal call became: its result is waited for, and nothing is called. "" for none.
	Task string `json:"-"`
}

// ErrCannotAsk means that a [Peer] cannot handle requests, now or later.
var ErrCannotAsk = errors.New("it cannot be asked")

// Peer is the caller as seen by the upstream during the call. Its methods may be called from any goroutine until the
// call has returned.
type Peer interface {
	// Notify forwards a notification of the upstream that belongs to the call (notifications/progress,
	// notifications/message). It does not block.
	Notify(method string, params json.RawMessage)
	// Ask forwards a request of the upstream (elicitation/create, sampling/createMessage, roots/list) and returns the
	// raw result. An error means that there will be no result; ErrCannotAsk, that the peer does not support requests.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}
