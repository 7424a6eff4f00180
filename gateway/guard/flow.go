package guard

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tool"
)

const (
	// sessionMemory is for how long it is remembered what a session has read, after it did so the last time.
	sessionMemory = 24 * time.Hour
	// maxTrails is how many sessions are remembered.
	maxTrails = 10_000
)

// flows remember what sessions have read, in memory, and which files of workspaces were written by whom who had read what.
type flows struct {
	mu     sync.Mutex
	trails map[string]*sessionTrail
	spaces *spaces
}

// sessionTrail is the trail of a session.
type sessionTrail struct {
	toolcall.Trail
	used time.Time // guarded by flows.mu
}

// trailKey names the session that ctx is of.
func trailKey(ctx context.Context) string { return tool.Principal(ctx) + "\x00" + tool.Session(ctx) }

// session returns the trail of a session. With fresh it is made where there is none, and kept for another while.
func (f *flows) session(key string, fresh bool) *sessionTrail {
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
		t = &sessionTrail{}
		f.shrink(now)
		f.trails[key] = t
	}
	t.used = now
	return t
}

// shrink forgets what is old, or the one that was used the longest time ago.
func (f *flows) shrink(now time.Time) {
	if f.trails == nil {
		f.trails = map[string]*sessionTrail{}
	}
	if len(f.trails) < maxTrails {
		return
	}
	maps.DeleteFunc(f.trails, func(_ string, t *sessionTrail) bool { return now.Sub(t.used) > sessionMemory })
	oldest := slices.SortedFunc(maps.Keys(f.trails), func(a, b string) int { return f.trails[a].used.Compare(f.trails[b].used) })
	for _, key := range oldest[:len(oldest)/10] {
		delete(f.trails, key)
	}
}

// note adds what was read to the session, and to the execution if there is one.
func (f *flows) note(session string, running *toolcall.Execution, origins ...toolcall.Origin) {
	if len(origins) == 0 {
		return
	}
	f.session(session, true).Add(origins...)
	if running != nil {
		running.Trail.Add(origins...)
	}
}

// origins are what brought the labels that were read so far in the session and in the execution.
func (f *flows) origins(session string, running *toolcall.Execution) []toolcall.Origin {
	var all []toolcall.Origin
	if running != nil {
		all = running.Trail.Origins()
	}
	if t := f.session(session, false); t != nil {
		for _, o := range t.Origins() {
			if !slices.ContainsFunc(all, func(known toolcall.Origin) bool { return known.Label == o.Label }) {
				all = append(all, o)
			}
		}
	}
	return all
}

// readSoFar returns the labels of all that the caller has read.
func (f *flows) readSoFar(ctx context.Context) []string {
	var all []string
	for _, o := range f.origins(trailKey(ctx), toolcall.ExecutionOf(ctx)) {
		all = append(all, o.Label)
	}
	return all
}

// Read are the labels of all that was read in the session that ctx is of, with what brought each first.
func (g *Guard) Read(ctx context.Context) []toolcall.Origin {
	return g.flows.origins(trailKey(ctx), toolcall.ExecutionOf(ctx))
}

// Recall notes that what origins say was read in the session that ctx is of, or on its behalf: what a run brought back,
// or what it had read before the gateway was restarted.
func (g *Guard) Recall(ctx context.Context, origins []toolcall.Origin) {
	g.flows.note(trailKey(ctx), toolcall.ExecutionOf(ctx), origins...)
}

// Carry has what the session of from has read count as read in that of to, and tokens of personal data mean the same in both,
// where both are of one principal. Tokens are forgotten with the process.
func (g *Guard) Carry(from, to context.Context) {
	g.Recall(to, g.Read(from))
	if who := tool.Principal(from); who == tool.Principal(to) {
		g.opts.Privacy.Share(who, tool.Session(from), tool.Session(to))
	}
}

// ReadBy returns what was read so far in the session that ctx is of, and by an execution.
func (g *Guard) ReadBy(ctx context.Context, running *toolcall.Execution) []toolcall.Origin {
	return g.flows.origins(trailKey(ctx), running)
}

// Note adds to what was read in the session that ctx is of, and by an execution.
func (g *Guard) Note(ctx context.Context, running *toolcall.Execution, read []toolcall.Origin) {
	g.flows.note(trailKey(ctx), running, read...)
}

// Repeat notes what the answer of a call brings that is not made again.
func (g *Guard) Repeat(ctx context.Context, c tool.Call) {
	g.taint(ctx, c, noted(g.labelsOf(g.policies.rules.Load(), c.Tool)))
}

// taint notes what a call may bring in, by its labels, before anybody gets anything of it: also what an upstream says while it runs is text of its own.
func (g *Guard) taint(ctx context.Context, c tool.Call, labels []string) {
	if !g.policies.rules.Load().on {
		return
	}
	running := toolcall.ExecutionOf(ctx)
	if running != nil {
		running.Trail.Count(c.Tool)
	} else if toolcall.ScopeOf(ctx).Run != "" {
		g.flows.session(trailKey(ctx), true).Count(c.Tool)
	}
	var origins []toolcall.Origin
	for _, label := range labels {
		origins = append(origins, toolcall.Origin{Label: label, Tool: c.Tool.String(), Execution: c.Execution, Time: time.Now().UTC()})
	}
	g.flows.note(trailKey(ctx), running, origins...)
}

func (g *Guard) labelsOf(r *Rules, id tool.ID) []string {
	if len(r.labeled) == 0 {
		return nil
	}
	wire := id.Name
	if e, ok := g.Catalog.Known(id); ok {
		wire = e.Wire
	}
	return r.labels(id, wire)
}
