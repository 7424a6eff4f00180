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

// maxLogLevel is the log level for the upstreams. Their sessions are shared by all
// clients, so it is the most verbose level requested; each client gets only
// the level that it requested. It is safe for concurrent use.
type maxLogLevel struct {
	mu   sync.Mutex
	rank int            // the rank of the most verbose level that a client requested, 0 for none
	sent map[string]int // the rank that was sent to each upstream
}

func levels() []string {
	return []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"}
}

func (l *maxLogLevel) raise(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rank = max(l.rank, slices.Index(levels(), level)+1)
}

// take returns the level to send to an upstream, "" if it already has it, and records it as sent.
func (l *maxLogLevel) take(upstream string) (level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rank <= l.sent[upstream] {
		return ""
	}
	if l.sent == nil {
		l.sent = map[string]int{}
	}
	l.sent[upstream] = l.rank
	return levels()[l.rank-1]
}

// setLevel sets the log level of a client of an older revision. Running upstreams
// get it at once, others when they are called: none is started for it.
func (d *Direct) setLevel(ctx context.Context, req mcp.Request) {
	var params struct {
		Level string `json:"level"`
	}
	_ = json.Unmarshal(paramsOf(req), &params) // the SDK reports an invalid request
	d.shared.logLevel.raise(params.Level)
	r := d.roster.Load()
	for _, up := range d.gateway.Offers() {
		if up.Running() {
			d.sendLevel(ctx, r.capabilitiesOf(up.ID))
		}
	}
}

// sendLevel sends an upstream the log level before a call, if it does not have it
// yet; this includes the level in a modern client's request.
func (d *Direct) sendLevel(ctx context.Context, a capabilities) {
	if !hasLogging(a) {
		return
	}
	level := d.shared.logLevel.take(a.upstream)
	if level == "" {
		return
	}
	_, err := d.call(ctx, tool.Call{Tool: tool.ID{Upstream: a.upstream, Name: tool.SetLogLevel}, Args: encode(map[string]any{"level": level})})
	if err != nil {
		d.log.DebugContext(ctx, "set log level", "upstream", a.upstream, "reason", sanitize.Line(err.Error(), 200))
	}
}
