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
	errStopping = errors.New("the gateway is stopping")
	errHungUp   = errors.New("the client hung up")
)

// hungUp is how long the client of a session may be away after its connection broke
// while it waited for an answer: it may come back for it (Last-Event-ID).
const hungUp = 10 * time.Second

// calls are the requests of clients that are being worked on. It ends them when
// their client has hung up, or when the gateway stops.
type calls struct {
	log  *slog.Logger
	mu   sync.Mutex
	last int
	// running holds how to end each call, with the session that it belongs to.
	running map[int]running
	// away holds the timers of sessions without a connected client.
	away map[string]*time.Timer
	idle chan struct{} // closed when none runs any more, once asked for
}

type running struct {
	session string
	end     context.CancelCauseFunc
}

func newCalls(log *slog.Logger) *calls {
	return &calls{log: log, running: map[int]running{}, away: map[string]*time.Timer{}}
}

// tracked is the middleware that notes every call of a tool, prompt or
// resource, and adds the caller to its context.
func (c *calls) tracked(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		principal := principalOf(req)
		if principal != "" {
			ctx = tool.WithPrincipal(ctx, principal)
		}
		ctx = tool.WithRemote(tool.WithSession(ctx, sessionOf(req)))
		if extra := req.GetExtra(); extra != nil {
			ctx = tool.WithWorkspace(ctx, extra.Header.Get(workspaceHeader))
		}
		switch method {
		case "tools/call", "prompts/get", "resources/read", "completion/complete":
		default:
			return next(ctx, method, req)
		}
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		defer c.begin(req.GetSession().ID(), end)()
		begin := time.Now()
		result, err := next(ctx, method, req)
		c.log.DebugContext(ctx, "request", "method", method, "principal", principal, "duration", time.Since(begin), "refused", err != nil)
		return result, err
	}
}

// principalOf returns the principal of a request's token, "" if it needed none.
func principalOf(req mcp.Request) string {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	return ""
}

// maxSession is how long the id of a session can be that we gave, in bytes.
const maxSession = 128

// sessionOf returns the session that a request says it belongs to. The SDK's own
// would be another for each request of a client without sessions.
func sessionOf(req mcp.Request) string {
	extra := req.GetExtra()
	if extra == nil || len(extra.Header.Get(sessionHeader)) > maxSession {
		return ""
	}
	return extra.Header.Get(sessionHeader)
}

// begin notes a call until the function that it returns is called.
func (c *calls) begin(session string, end context.CancelCauseFunc) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id := c.last
	c.running[id] = running{session, end}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.running, id); len(c.running) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
	}
}

// broke says that a client of a session is gone from a request that was not
// answered. Unless back is called in time, the calls of the session are ended.
func (c *calls) broke(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.away[session]; timer != nil {
		timer.Stop()
	}
	c.away[session] = time.AfterFunc(hungUp, func() { c.abandon(session) })
}

// back says that the client of a session is connected again.
func (c *calls) back(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.away[session]; timer != nil {
		timer.Stop()
		delete(c.away, session)
	}
}

func (c *calls) abandon(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away[session] == nil { // it came back just now
		return
	}
	delete(c.away, session)
	for _, call := range c.running {
		if call.session == session {
			call.end(errHungUp)
		}
	}
}

// drain waits until no call runs, until ctx ends; what still runs then is ended and waited for.
func (c *calls) drain(ctx context.Context) {
	done := c.emptied()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	c.mu.Lock()
	for _, call := range c.running {
		call.end(errStopping)
	}
	count := len(c.running)
	c.mu.Unlock()
	c.log.Warn("calls ended, their time is over", "calls", count)
	select {
	case <-done:
	case <-time.After(5 * time.Second): // an execution is ended in less
	}
}

// emptied is closed as soon as no call runs.
func (c *calls) emptied() <-chan struct{} {
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
	for session, timer := range c.away {
		timer.Stop()
		delete(c.away, session)
	}
}
