package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/tool"
)

var (
	errStopping     = errors.New("the gateway is stopping")
	errDisconnected = errors.New("the client disconnected")
)

// reconnectTimeout is how long a client may stay disconnected after its connection broke while
// it waited for a response: it may reconnect with Last-Event-ID.
const reconnectTimeout = 10 * time.Second

// calls tracks the in-flight requests of clients. It cancels them when their
// client disconnects or the gateway stops. It is safe for concurrent use.
type calls struct {
	log  *slog.Logger
	mu   sync.Mutex
	last int
	// running holds the cancel function and the session of each call.
	running map[int]runningCall
	// disconnected holds the reconnect timers of sessions without a connected client.
	disconnected map[sessionKey]*time.Timer
	idle         chan struct{} // closed when no call runs; nil unless drain waits
}

// sessionKey identifies a session at /mcp, or at an endpoint of the settings.
type sessionKey struct{ endpoint, id string }

type runningCall struct {
	session sessionKey
	cancel  context.CancelCauseFunc
}

func newCalls(log *slog.Logger) *calls {
	return &calls{log: log, running: map[int]runningCall{}, disconnected: map[sessionKey]*time.Timer{}}
}

// track returns the middleware of an endpoint, "" for /mcp, that registers every call of a tool, prompt or
// resource, and adds the caller to its context, confined to the endpoint.
func (c *calls) track(endpoint string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return c.tracked(tool.WithEndpoint(ctx, endpoint), method, req, next)
		}
	}
}

func (c *calls) tracked(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	principal := principalOf(req)
	if principal != "" {
		ctx = tool.WithPrincipal(ctx, principal)
	}
	ctx = tool.WithRemote(tool.WithSession(ctx, sessionOf(req)))
	if extra := req.GetExtra(); extra != nil {
		ctx = tool.WithWorkspace(ctx, extra.Header.Get(workspaceHeader))
	}
	switch method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete", tool.GetTask, tool.UpdateTask, tool.CancelTask:
	default:
		return next(ctx, method, req)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer c.begin(sessionKey{tool.Endpoint(ctx), req.GetSession().ID()}, end)()
	begin := time.Now()
	result, err := next(ctx, method, req)
	c.log.DebugContext(ctx, "request", "method", method, "principal", principal, "duration", time.Since(begin), "refused", err != nil)
	return result, err
}

// principalOf returns the principal of a request's token, "" if it has no token.
func principalOf(req mcp.Request) string {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	return ""
}

// maxSessionID is the length in bytes of the longest session ID that the gateway issues.
const maxSessionID = 128

// sessionOf returns the session ID in the header of a request, "" if there is none. The SDK's
// session differs for each request of a client without sessions.
func sessionOf(req mcp.Request) string {
	extra := req.GetExtra()
	if extra == nil || len(extra.Header.Get(sessionHeader)) > maxSessionID {
		return ""
	}
	return extra.Header.Get(sessionHeader)
}

// begin registers a call until the returned function is called.
func (c *calls) begin(session sessionKey, end context.CancelCauseFunc) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id := c.last
	c.running[id] = runningCall{session, end}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.running, id); len(c.running) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
	}
}

// onDisconnect records that the client of a session disconnected before its response. The
// calls of the session are canceled unless it reconnects in time.
func (c *calls) onDisconnect(session sessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.disconnected[session]; timer != nil {
		timer.Stop()
	}
	c.disconnected[session] = time.AfterFunc(reconnectTimeout, func() { c.abandon(session) })
}

// onReconnect records that the client of a session is connected again.
func (c *calls) onReconnect(session sessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.disconnected[session]; timer != nil {
		timer.Stop()
		delete(c.disconnected, session)
	}
}

func (c *calls) abandon(session sessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.disconnected[session] == nil { // it has reconnected
		return
	}
	delete(c.disconnected, session)
	for _, call := range c.running {
		if call.session == session {
			call.cancel(errDisconnected)
		}
	}
}

// drain waits until no call runs or ctx ends; then it cancels the remaining calls and waits up to 5 s for them.
func (c *calls) drain(ctx context.Context) {
	done := c.idleSignal()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	c.mu.Lock()
	for _, call := range c.running {
		call.cancel(errStopping)
	}
	count := len(c.running)
	c.mu.Unlock()
	c.log.Warn("drain timeout, calls canceled", "calls", count)
	select {
	case <-done:
	case <-time.After(5 * time.Second): // an execution is ended in less
	}
}

// idleSignal returns a channel that is closed as soon as no call runs.
func (c *calls) idleSignal() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := make(chan struct{})
	if len(c.running) == 0 {
		close(done)
	} else {
		c.idle = done
	}
	return done
}

// close stops the timers.
func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for session, timer := range c.disconnected {
		timer.Stop()
		delete(c.disconnected, session)
	}
}
