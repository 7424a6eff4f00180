package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/taskid"
	"sallyport/internal/tool"
)

// A client of revision 2026-07-28 that declares the extension for tasks gets the task that a call became at its upstream, with an ID
// of the gateway, and asks for its state. For all others the gateway waits for the result.

const (
	tasksExtension = "io.modelcontextprotocol/tasks"
	// headerName repeats the ID of a task in the HTTP headers of a request about it.
	headerName = "Mcp-Name"
)

// keepsTasks reports whether the client of a request handles tasks itself.
func keepsTasks(req mcp.Request) bool {
	if !isModernRequest(req) {
		return false
	}
	declared, _ := metaOf(req.GetParams())[mcp.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := declared["extensions"].(map[string]any)
	_, ok := extensions[tasksExtension]
	return ok
}

// taskParams are the params of a request about a task as the SDK decodes them.
type taskParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
}

// acceptTasks makes the SDK's server accept requests about tasks, which receive handles.
func acceptTasks(server *mcp.Server) {
	for _, method := range []string{tool.GetTask, tool.UpdateTask, tool.CancelTask} {
		// It fails only for methods of the SDK.
		_ = mcp.AddReceivingCustomMethod(server, method, func(context.Context, *mcp.ServerSession, *taskParams) (*rawResult, error) {
			return nil, notFoundMethod(method)
		})
	}
}

func notFoundMethod(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no method " + method}
}

// task handles a request about a task.
func (d *Direct) task(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	switch {
	case !isModernRequest(req):
		return nil, notFoundMethod(method)
	case !keepsTasks(req):
		return nil, errNoTasks()
	}
	var params object
	if json.Unmarshal(paramsOf(req), &params) != nil || params == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params must be an object"}
	}
	id := decodeString(params["taskId"])
	if err := checkTaskHeader(req, id); err != nil {
		return nil, err
	}
	task, ok := d.taskIDs.Open(id, taskCaller(ctx))
	if !ok || d.gateway.AlwaysDenied(ctx, task.Tool) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Task not found"}
	}
	raw, err := rawAnswer(d.call(ctx, taskCall(method, task, params)))
	if err == nil {
		raw, err = d.shownTask(method, id, task, raw)
	}
	return toResponse(ctx, method, true, raw, err)
}

// errNoTasks is the error of a request about tasks of a client that does not declare the extension.
func errNoTasks() error {
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client does not declare " + tasksExtension,
		Data: encode(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: object{}}}})}
}

// taskCaller returns what a task is bound to: no other caller can use its ID.
func taskCaller(ctx context.Context) []byte {
	return encode([]string{tool.Principal(ctx), tool.Endpoint(ctx)})
}

// checkTaskHeader checks that the header of an HTTP request repeats the ID of the task.
func checkTaskHeader(req mcp.Request, id string) error {
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil || strings.TrimSpace(extra.Header.Get(headerName)) == id {
		return nil
	}
	return &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: "header mismatch: " + headerName + " must be the taskId of the body"}
}

// taskCall returns the call of the upstream for a request with params.
func taskCall(method string, task taskid.Task, params object) tool.Call {
	args, rest := object{"taskId": encode(task.Wire)}, object{}
	if method == tool.UpdateTask {
		moveMember(args, params, "inputResponses")
	}
	moveMember(rest, params, "_meta")
	removeHopByHop(rest)
	return tool.Call{Tool: tool.ID{Upstream: task.Tool.Upstream, Name: method}, Args: encode(args), Params: rest, KeepsTasks: true, Rounds: true}
}

// newTask replaces the ID of a task that a call became by one for the client.
func (d *Direct) newTask(ctx context.Context, call tool.Call, raw json.RawMessage) (json.RawMessage, error) {
	if !call.KeepsTasks || call.Tool.Method() != "tools/call" || decodeMember(raw, "resultType") != "task" {
		return raw, nil
	}
	id, ok := d.taskIDs.Seal(taskid.Task{Tool: call.Tool, Wire: decodeMember(raw, "taskId")}, taskCaller(ctx))
	if !ok {
		return nil, &tool.Error{Kind: tool.Upstream, Message: "the upstream sent an invalid task", Hint: "the call may have taken effect"}
	}
	return replaceMember(raw, "taskId", encode(id)), nil
}

// shownTask returns the upstream's response about a task as the client sees it: with the task's ID for the client, and what it asks
// and returns like the requests and results of calls.
func (d *Direct) shownTask(method, id string, task taskid.Task, raw json.RawMessage) (json.RawMessage, error) {
	if method == tool.GetTask && decodeMember(raw, "taskId") != task.Wire {
		return nil, &tool.Error{Kind: tool.Upstream, Message: "the upstream sent the state of another task"}
	}
	raw = editMember(raw, "taskId", func(json.RawMessage) json.RawMessage { return encode(id) })
	raw = editMember(raw, "result", func(result json.RawMessage) json.RawMessage {
		return d.roster.Load().shownResult(tool.Call{Tool: task.Tool}, "", result)
	})
	if d.opts.WireNames {
		return raw, nil
	}
	return prefixRequests(raw, task.Tool.Upstream), nil
}
