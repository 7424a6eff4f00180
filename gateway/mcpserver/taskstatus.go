package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/mcpserver/stream"
	"sallyport/gateway/mcpserver/taskid"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

// A client that names tasks in subscriptions/listen is notified of their status. The gateway polls them for it.

const (
	methodAcknowledged = "notifications/subscriptions/acknowledged"
	// maxWatched is how many tasks one request can name; more are not agreed to.
	maxWatched = 64
)

// taskWatch is a request to be notified of the status of tasks.
type taskWatch struct {
	session *mcp.ServerSession
	tasks   map[string]taskid.Task // by the ID that the client knows
	params  json.RawMessage        // the _meta of the request
	// acknowledged is closed when the client knows the tasks; meta is that of its notifications, set before.
	acknowledged chan struct{}
	meta         json.RawMessage
}

type taskWatchKey struct{}

// tasksIn returns the IDs of the tasks in subscriptions/listen of a modern client.
func tasksIn(req mcp.Request) []string {
	var params struct {
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
		} `json:"notifications"`
	}
	if !isModernRequest(req) || json.Unmarshal(paramsOf(req), &params) != nil {
		return nil
	}
	return params.Notifications.TaskIDs
}

// taskListener serves clients that listen to tasks.
type taskListener struct{ *Direct }

// listen serves subscriptions/listen with tasks, until all have ended or the client leaves. next serves the rest of it.
func (d taskListener) listen(ctx context.Context, next mcp.MethodHandler, req mcp.Request, ids []string) (mcp.Result, error) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || !keepsTasks(req) {
		return nil, errNoTasks()
	}
	w := &taskWatch{session: session, tasks: map[string]taskid.Task{}, params: paramsOf(req), acknowledged: make(chan struct{})}
	for _, id := range ids[:min(len(ids), maxWatched)] {
		if task, ok := d.taskIDs.Open(id, taskCaller(ctx)); ok && !d.gateway.AlwaysDenied(ctx, task.Tool) {
			w.tasks[id] = task
		}
	}
	inner, cancel := context.WithCancel(context.WithValue(ctx, taskWatchKey{}, w))
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	for id, task := range w.tasks {
		work.Go(func() { d.watchTask(inner, w, id, task) })
	}
	result, err := next(inner, methodListen, req)
	if err == nil { // it returns at once if the client listens to nothing else
		work.Wait()
	}
	return result, err
}

// acknowledgeTasks is sending middleware that adds the tasks to what the client is told that it listens to.
func acknowledgeTasks(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		w, ok := ctx.Value(taskWatchKey{}).(*taskWatch)
		if !ok || method != methodAcknowledged {
			return next(ctx, method, req)
		}
		params := encode(req.GetParams())
		var fields object
		_ = json.Unmarshal(params, &fields) // it is of the SDK
		w.meta = fields["_meta"]
		params = editMember(params, "notifications", func(agreed json.RawMessage) json.RawMessage {
			return replaceMember(agreed, "taskIds", encode(slices.Sorted(maps.Keys(w.tasks))))
		})
		defer close(w.acknowledged)
		return next(withParams(ctx, params), method, req)
	}
}

// watchTask notifies the client of each state of a task, until it has ended or cannot be polled.
func (d taskListener) watchTask(ctx context.Context, w *taskWatch, id string, task taskid.Task) {
	select {
	case <-w.acknowledged:
	case <-ctx.Done():
		return
	}
	last := ""
	for {
		var params object
		_ = json.Unmarshal(w.params, &params) // it was read before
		raw, err := rawAnswer(d.call(ctx, taskCall(tool.GetTask, task, params)))
		if err == nil {
			raw, err = d.shownTask(tool.GetTask, id, task, raw)
		}
		var state object
		if err != nil || json.Unmarshal(raw, &state) != nil || len(state) == 0 {
			return
		}
		delete(state, "resultType")
		state["_meta"] = w.meta
		now := encode(state)
		if string(now) != last && w.session.NotifyProgress(withParams(ctx, stream.MarkTask(now)), &mcp.ProgressNotificationParams{}) != nil {
			return
		}
		last = string(now)
		if wait, ok := stream.NextPoll(now); !ok || sleep.For(ctx, wait) != nil {
			return
		}
	}
}
