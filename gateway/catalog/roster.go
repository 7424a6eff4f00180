package catalog

import (
	"reflect"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
)

// roster is the list of upstreams, in the order of the settings; in-process ones come last.
type roster struct {
	members []*member
	byID    map[string]*member
}

func newRoster(members []*member) *roster {
	r := &roster{members: members, byID: make(map[string]*member, len(members))}
	for _, m := range members {
		r.byID[m.id] = m
	}
	return r
}

func (r *roster) ids() []string {
	ids := make([]string, len(r.members))
	for i, m := range r.members {
		ids[i] = m.id
	}
	return ids
}

// Counts has the numbers of upstreams that a reload added, changed, removed and kept.
type Counts struct{ Added, Changed, Removed, Kept int }

// Check returns an error if the settings use the id of an in-process upstream.
func (c *Catalog) Check(cfg *config.Config) error {
	_, err := c.roster.Load().inProcessMembers(enabledUpstreams(cfg))
	return err
}

// Apply replaces the upstreams by those of the settings; in-process ones stay.
func (c *Catalog) Apply(cfg *config.Config) (Counts, error) {
	ups := enabledUpstreams(cfg)
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.Closed() {
		return Counts{}, toolcall.ClosedError()
	}
	var n Counts
	old := c.roster.Load()
	own, err := old.inProcessMembers(ups)
	if err != nil {
		return Counts{}, err
	}
	var members, fresh []*member
	for _, up := range ups {
		m := old.byID[up.ID]
		if m == nil || !(membership{c}).reuse(m, up) {
			m = newMember(up)
			fresh = append(fresh, m)
		}
		members = append(members, m)
	}
	membership{c}.boot(fresh)
	members = append(members, own...)
	next := newRoster(members)
	c.roster.Store(next)
	membership{c}.requestRebuild()
	for _, m := range old.members {
		switch next.byID[m.id] {
		case m:
			n.Kept++
			continue
		case nil:
			n.Removed++
		default:
			n.Changed++
		}
		c.work.Go(func() { membership{c}.retire(m) })
	}
	n.Added = len(members) - n.Kept - n.Changed
	readiness{c}.resetDeadline()
	return n, nil
}

// reuse reports whether a member can stay under its new settings. If so, it applies
// the descriptive fields, which need no new session.
func (c membership) reuse(m *member, up config.Upstream) bool {
	old := *m.cfg.Load()
	plainly := old
	plainly.Name, plainly.Description, plainly.Trust, plainly.Privacy = up.Name, up.Description, up.Trust, up.Privacy
	plainly.Labels, plainly.ToolLabels = up.Labels, up.ToolLabels
	if !reflect.DeepEqual(plainly, up) {
		return false
	}
	if !reflect.DeepEqual(old, up) {
		<-m.booted
		m.cfg.Store(&up)
		c.reevaluate(m)
		c.markStale(m)
	}
	return true
}

// retire closes a member once its calls have ended, after retireGrace at the latest,
// or when the catalog closes.
func (c membership) retire(m *member) {
	m.replaced.Store(true)
	select {
	case <-m.calls.close():
	case <-time.After(retireGrace):
	case <-c.ended:
	}
	if err := m.close(); err != nil {
		c.log.Warn("close upstream", "upstream", m.id, "error", err)
	}
}

// retireGrace is how long calls may still take to an upstream that the settings changed or left out.
const retireGrace = 10 * time.Second

// inProcessMembers returns the in-process members. It fails if ups uses the id of one.
func (r *roster) inProcessMembers(ups []config.Upstream) ([]*member, error) {
	var own []*member
	for _, m := range r.members {
		if m.inProcess == nil {
			continue
		}
		if slices.ContainsFunc(ups, func(up config.Upstream) bool { return up.ID == m.id }) {
			return nil, idTakenError(m.id)
		}
		own = append(own, m)
	}
	return own, nil
}
