package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// loudness is the log level for the upstreams. Their sessions are shared by all
// clients, so it is the most verbose level requested; each client gets only
// the level that it requested. It is safe for concurrent use.
type loudness struct {
	mu     sync.Mutex
	wanted int            // the rank of the most verbose level that a client requested, 0 for none
	told   map[string]int // the rank that was sent to each upstream
}

func levels() []string {
	return []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"}
}

func (l *loudness) want(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = max(l.wanted, slices.Index(levels(), level)+1)
}

// tell returns the level to send to an upstream, "" if it already has it, and records it as sent.
func (l *loudness) tell(upstream string) (level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted <= l.told[upstream] {
		return ""
	}
	if l.told == nil {
		l.told = map[string]int{}
	}
	l.told[upstream] = l.wanted
	return levels()[l.wanted-1]
}

// setLevel sets the log level of a client of an older revision. Running upstreams
// get it at once, others when they are called: none is started for it.
func (d *Direct) setLevel(ctx context.Context, req mcp.Request) {
	var params struct {
		Level string `json:"level"`
	}
	_ = json.Unmarshal(paramsOf(req), &params) // the SDK reports an invalid request
	d.loudness.want(params.Level)
	r := d.roster.Load()
	for _, up := range d.verbs.Offers() {
		if up.Running() {
			d.tellLevel(ctx, r.of(up.ID))
		}
	}
}

// tellLevel sends an upstream the log level before a call, if it does not have it
// yet; this includes the level in a modern client's request.
func (d *Direct) tellLevel(ctx context.Context, a ability) {
	if !hasLogging(a) {
		return
	}
	level := d.loudness.tell(a.upstream)
	if level == "" {
		return
	}
	_, err := d.call(ctx, tool.Call{Tool: tool.ID{Upstream: a.upstream, Name: tool.SetLogLevel}, Args: encode(map[string]any{"level": level})})
	if err != nil {
		d.log.DebugContext(ctx, "set log level", "upstream", a.upstream, "reason", sanitize.Line(err.Error(), 200))
	}
}
