package mcpserver

import (
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/toolsearch"
)

// readers has the signatures that each session got from search_tools. Requests of clients without sessions have a session
// each, so nothing is left out of their answers. The zero value is ready; it is safe for concurrent use.
type readers struct {
	mu    sync.Mutex
	shown map[weak.Pointer[mcp.ServerSession]]*toolsearch.Shown
}

// shownTo returns the signatures of a session, which are dropped with it.
func (r *readers) shownTo(session *mcp.ServerSession) *toolsearch.Shown {
	if session == nil {
		return nil
	}
	key := weak.Make(session)
	r.mu.Lock()
	defer r.mu.Unlock()
	if shown := r.shown[key]; shown != nil {
		return shown
	}
	if r.shown == nil {
		r.shown = map[weak.Pointer[mcp.ServerSession]]*toolsearch.Shown{}
	}
	r.shown[key] = &toolsearch.Shown{}
	runtime.AddCleanup(session, r.drop, key)
	return r.shown[key]
}

func (r *readers) drop(key weak.Pointer[mcp.ServerSession]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.shown, key)
}
