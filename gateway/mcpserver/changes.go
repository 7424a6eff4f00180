package mcpserver

import (
	"context"
	"crypto/sha256"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// methodToolsChanged is the notification that the list of tools has changed.
	methodToolsChanged = "notifications/tools/list_changed"
	methodListen       = "subscriptions/listen"
	// listWait is how long a list waits for upstreams that have not been tried yet: clients give up on a handshake soon, and
	// hear of the others by a notification.
	listWait = 1500 * time.Millisecond
)

// digest identifies a list.
type digest = [sha256.Size]byte

// listed records which list of tools each session has, so that only those whose list changed are notified. The zero value
// is ready; it is safe for concurrent use.
type listed struct {
	mu    sync.Mutex
	lists map[weak.Pointer[mcp.ServerSession]]*listing
}

// listing is the list of one session.
type listing struct {
	last    digest
	current func() digest // of the list that the session would get now
}

// record records that the session of a request gets the list with digest last. current returns the digest of the list that
// the session would get now. A modern request has a session of its own, which hears of changes only if it subscribes.
func (l *listed) record(method string, req mcp.Request, last digest, current func() digest) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil || method != methodListen && isModernRequest(req) {
		return
	}
	key := weak.Make(session)
	now := &listing{last, current}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists == nil {
		l.lists = map[weak.Pointer[mcp.ServerSession]]*listing{}
	}
	if l.lists[key] == nil {
		runtime.AddCleanup(session, l.drop, key)
	}
	l.lists[key] = now
}

func (l *listed) drop(key weak.Pointer[mcp.ServerSession]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lists, key)
}

// changed reports whether the list of a session differs from the last one that it was told of. A session without a list has
// nothing that could be out of date.
func (l *listed) changed(session *mcp.ServerSession) bool {
	l.mu.Lock()
	known := l.lists[weak.Make(session)]
	l.mu.Unlock()
	if known == nil {
		return false
	}
	now := known.current()
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := now != known.last
	known.last = now
	return changed
}

// onlyChanged is sending middleware that drops the notification of a change for sessions with an unchanged list.
func (l *listed) onlyChanged(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if session, ok := req.GetSession().(*mcp.ServerSession); ok && method == methodToolsChanged && !l.changed(session) {
			return nil, nil //nolint:nilnil // a notification has no result
		}
		return next(ctx, method, req)
	}
}
