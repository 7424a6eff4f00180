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

// loudness is how much the upstreams are to log. Their sessions are shared by
// all clients, so the wordiest wins; each client gets what it asked for.
type loudness struct {
	mu     sync.Mutex
	wanted int            // the rank of the wordiest level that a client has asked for, 0 for none
	told   map[string]int // the rank that each upstream knows of
}

func levels() []string {
	return []string{"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"}
}

func (l *loudness) want(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = max(l.wanted, slices.Index(levels(), level)+1)
}

// tell returns what an upstream must be told, "" for nothing, and notes that it was.
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

// setLevel takes the log level of a client of an older revision. Upstreams that
// run get it at once, others when they are called: nothing is started for it.
func (d *Direct) setLevel(ctx context.Context, req mcp.Request) {
	var params struct {
		Level string `json:"level"`
	}
	_ = json.Unmarshal(paramsOf(req), &params) // the SDK says what is wrong with it
	d.loudness.want(params.Level)
	r := d.roster.Load()
	for _, up := range d.verbs.Offers() {
		if up.Running() {
			d.tellLevel(ctx, r.of(up.ID))
		}
	}
}

// tellLevel makes sure that an upstream that is about to be called logs enough,
// also for the level that a modern client has put into its request.
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
