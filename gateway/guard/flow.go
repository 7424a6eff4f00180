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
	// sessionMemory is how long the trail of a session is kept after its last use.
	sessionMemory = 24 * time.Hour
	// maxTrails is the maximum number of sessions with a trail.
	maxTrails = 10_000
)

// flows tracks the labels of what sessions have read, and the labels of workspace files.
type flows struct {
	mu     sync.Mutex
	trails map[string]*sessionTrail
	labels *labelStore
	shared *sessionLabels
}

// sessionTrail is the trail of a session.
type sessionTrail struct {
	toolcall.Trail
	// The following fields are guarded by flows.mu. sent has the labels that are in the store.
	used time.Time
	sent map[string]bool
}

// trailKey returns the key of the session of ctx.
func trailKey(ctx context.Context) string { return tool.Principal(ctx) + "\x00" + tool.Session(ctx) }

// session returns the trail of a session. With fresh it creates a missing one and marks it as used now; otherwise a missing one is nil.
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

// shrink drops expired trails, and the tenth that was used least recently, if there are too many.
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

// note adds origins to the trail of the session, and to that of the execution if there is one. After an error other gateways
// do not know them yet: they are sent again with the next ones.
func (f *flows) note(session string, running *toolcall.Execution, origins ...toolcall.Origin) error {
	if len(origins) == 0 {
		return nil
	}
	t := f.session(session, true)
	t.Add(origins...)
	if running != nil {
		running.Trail.Add(origins...)
	}
	return f.send(session, t)
}

// send stores the labels of a session that other gateways do not know.
func (f *flows) send(session string, t *sessionTrail) error {
	f.mu.Lock()
	fresh := slices.DeleteFunc(t.Origins(), func(o toolcall.Origin) bool { return t.sent[o.Label] })
	f.mu.Unlock()
	if f.shared == nil || len(fresh) == 0 {
		return nil
	}
	if err := f.shared.add(session, fresh); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.sent == nil {
		t.sent = map[string]bool{}
	}
	for _, o := range fresh {
		t.sent[o.Label] = true
	}
	return nil
}

// origins returns the origins of the labels that the session and the execution have read so far.
func (f *flows) origins(session string, running *toolcall.Execution) []toolcall.Origin {
	var all []toolcall.Origin
	if running != nil {
		all = running.Trail.Origins()
	}
	var read toolcall.Trail
	if t := f.session(session, false); t != nil {
		read.Add(t.Origins()...)
	}
	read.Add(f.shared.read(session)...)
	for _, o := range read.Origins() {
		if !slices.ContainsFunc(all, func(known toolcall.Origin) bool { return known.Label == o.Label }) {
			all = append(all, o)
		}
	}
	return all
}

// labelsRead returns the labels of everything that the caller has read.
func (f *flows) labelsRead(ctx context.Context) []string {
	var all []string
	for _, o := range f.origins(trailKey(ctx), toolcall.ExecutionOf(ctx)) {
		all = append(all, o.Label)
	}
	return all
}

// SessionOrigins returns the labels of everything that the session of ctx has read, with the first origin of each.
func (g *Guard) SessionOrigins(ctx context.Context) []toolcall.Origin {
	return g.flows.origins(trailKey(ctx), toolcall.ExecutionOf(ctx))
}

// AddOrigins adds origins to the session of ctx: of data that a run returned, or that it had read before the gateway was
// restarted.
func (g *Guard) AddOrigins(ctx context.Context, origins []toolcall.Origin) {
	g.logUnsent(ctx, g.flows.note(trailKey(ctx), toolcall.ExecutionOf(ctx), origins...))
}

// logUnsent logs that other gateways do not know the labels of a session yet.
func (g *Guard) logUnsent(ctx context.Context, err error) {
	if err != nil {
		g.opts.Logger.ErrorContext(ctx, "labels of a session are not stored yet", "error", err)
	}
}

// ShareSession adds the origins of from's session to that of to. If both have the same principal, they also share the tokens of
// personal data. Tokens are lost when the process ends.
func (g *Guard) ShareSession(from, to context.Context) {
	g.AddOrigins(to, g.SessionOrigins(from))
	if who := tool.Principal(from); who == tool.Principal(to) {
		g.opts.Privacy.Share(who, tool.Session(from), tool.Session(to))
	}
}

// ExecutionOrigins returns the origins of what the session of ctx and an execution have read so far.
func (g *Guard) ExecutionOrigins(ctx context.Context, running *toolcall.Execution) []toolcall.Origin {
	return g.flows.origins(trailKey(ctx), running)
}

// AddExecutionOrigins adds origins to the session of ctx and to an execution.
func (g *Guard) AddExecutionOrigins(ctx context.Context, running *toolcall.Execution, read []toolcall.Origin) {
	g.logUnsent(ctx, g.flows.note(trailKey(ctx), running, read...))
}

// TaintReplayed records the labels of a call that is answered from a journal.
func (g *Guard) TaintReplayed(ctx context.Context, c tool.Call) {
	g.logUnsent(ctx, g.taint(ctx, c, resultLabels(g.labelsOf(g.policies.rules.Load(), c.Tool))))
}

// taint records the labels of a call before its data reaches the caller. It runs before the call: an upstream also sends text while the call
// runs. After an error other gateways do not know the labels, and the call must not be made.
func (g *Guard) taint(ctx context.Context, c tool.Call, labels []string) error {
	if !g.policies.rules.Load().on {
		return nil
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
	return g.flows.note(trailKey(ctx), running, origins...)
}

func (g *Guard) labelsOf(r *Rules, id tool.ID) []string {
	if len(r.labeled) == 0 {
		return nil
	}
	wire := id.Name
	if e, ok := g.Catalog.Lookup(id); ok {
		wire = e.Wire
	}
	return r.Labels(id, wire)
}
