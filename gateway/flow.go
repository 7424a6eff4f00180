package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/tool"
)

// Origin says what brought a label first.
type Origin struct {
	Label string `json:"label"`
	// Tool is whose result it was; File the path of a file in a workspace that somebody wrote who had read such results.
	Tool string `json:"tool,omitempty"`
	File string `json:"file,omitempty"`
	// Execution made the call, or wrote the file; "" is a client's call.
	Execution string    `json:"execution,omitempty"`
	Time      time.Time `json:"time"`
}

// trail is what an execution or a session has read, by labels, and what it has called. It is safe for concurrent use.
type trail struct {
	mu    sync.Mutex
	read  map[string]Origin
	calls map[string]int64
	used  time.Time
}

// note adds labels; of several that bring one the first stays.
func (t *trail) note(origins ...Origin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range origins {
		if _, known := t.read[o.Label]; known {
			continue
		}
		if t.read == nil {
			t.read = map[string]Origin{}
		}
		t.read[o.Label] = o
	}
}

// count notes that a tool was called.
func (t *trail) count(id tool.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]int64{}
	}
	t.calls[id.Upstream]++
	t.calls[id.Upstream+"."+strings.ReplaceAll(id.Name, "/", ".")]++
}

// called is how often each tool and upstream was called.
func (t *trail) called() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

// origins are what brought the labels, sorted by them.
func (t *trail) origins() []Origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.read), func(a, b Origin) int { return cmp.Compare(a.Label, b.Label) })
}

const (
	// sessionMemory is for how long it is remembered what a session has read, after it did so the last time.
	sessionMemory = 24 * time.Hour
	// maxTrails is how many sessions are remembered.
	maxTrails = 10_000
)

// flows remember what sessions have read, in memory, and which files of workspaces were written by whom who had read what.
type flows struct {
	mu     sync.Mutex
	trails map[string]*trail
	spaces *spaces
}

// trailKey names the session that ctx is of.
func trailKey(ctx context.Context) string { return tool.Principal(ctx) + "\x00" + tool.Session(ctx) }

// session returns the trail of a session. With fresh it is made where there is none, and kept for another while.
func (f *flows) session(key string, fresh bool) *trail {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	t := f.trails[key]
	if t != nil && now.Sub(t.used) > sessionMemory {
		delete(f.trails, key)
		t = nil
	}
	if !fresh {
		return t
	}
	if t == nil {
		t = &trail{}
		f.shrink(now)
		f.trails[key] = t
	}
	t.used = now
	return t
}

// shrink forgets what is old, or the one that was used the longest time ago.
func (f *flows) shrink(now time.Time) {
	if f.trails == nil {
		f.trails = map[string]*trail{}
	}
	if len(f.trails) < maxTrails {
		return
	}
	maps.DeleteFunc(f.trails, func(_ string, t *trail) bool { return now.Sub(t.used) > sessionMemory })
	oldest := slices.SortedFunc(maps.Keys(f.trails), func(a, b string) int { return f.trails[a].used.Compare(f.trails[b].used) })
	for _, key := range oldest[:len(oldest)/10] {
		delete(f.trails, key)
	}
}

// note adds what was read to the session, and to the execution if there is one.
func (f *flows) note(session string, running *running, origins ...Origin) {
	if len(origins) == 0 {
		return
	}
	f.session(session, true).note(origins...)
	if running != nil {
		running.trail.note(origins...)
	}
}

// origins are what brought the labels that were read so far in the session and in the execution.
func (f *flows) origins(session string, running *running) []Origin {
	var all []Origin
	if running != nil {
		all = running.trail.origins()
	}
	if t := f.session(session, false); t != nil {
		for _, o := range t.origins() {
			if !slices.ContainsFunc(all, func(known Origin) bool { return known.Label == o.Label }) {
				all = append(all, o)
			}
		}
	}
	return all
}

// readSoFar are the labels of all that whoever calls has read so far.
func (f *flows) readSoFar(ctx context.Context) []string {
	var all []string
	for _, o := range f.origins(trailKey(ctx), runningOf(ctx)) {
		all = append(all, o.Label)
	}
	return all
}

// Read are the labels of all that was read in the session that ctx is of, with what brought each first.
func (g *Gateway) Read(ctx context.Context) []Origin {
	return g.flows.origins(trailKey(ctx), runningOf(ctx))
}

// Recall notes that what origins say was read in the session that ctx is of, or on its behalf: what a run brought back,
// or what it had read before the gateway was started anew.
func (g *Gateway) Recall(ctx context.Context, origins []Origin) {
	g.flows.note(trailKey(ctx), runningOf(ctx), origins...)
}

// Carry has what the session of from has read count as read in that of to, and tokens of personal data mean the same in both,
// where both are of one principal. Tokens are forgotten with the process.
func (g *Gateway) Carry(from, to context.Context) {
	g.Recall(to, g.Read(from))
	if who := tool.Principal(from); who == tool.Principal(to) {
		g.Privacy.Share(who, tool.Session(from), tool.Session(to))
	}
}

// taint notes what a call may bring in, by its labels, before anybody gets anything of it: also what an upstream says while it runs is text of its own.
func (g *Gateway) taint(ctx context.Context, call tool.Call, labels []string) {
	if !g.policies.rules.Load().on {
		return
	}
	running := runningOf(ctx)
	if running != nil {
		running.trail.count(call.Tool)
	} else if unwaitedBy(ctx) != "" {
		g.flows.session(trailKey(ctx), true).count(call.Tool)
	}
	var origins []Origin
	for _, label := range labels {
		origins = append(origins, Origin{Label: label, Tool: call.Tool.String(), Execution: call.Execution, Time: time.Now().UTC()})
	}
	g.flows.note(trailKey(ctx), running, origins...)
}

func (g *Gateway) labelsOf(r *policyRules, id tool.ID) []string {
	if len(r.labeled) == 0 {
		return nil
	}
	wire := id.Name
	if e, ok := g.catalog.known(id); ok {
		wire = e.Wire
	}
	return r.labels(id, wire)
}
