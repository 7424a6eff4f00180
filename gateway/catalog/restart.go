package catalog

import (
	"context"
	"slices"

	"sallyport/gateway/toolcall"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// Restart replaces the session of an upstream: its process ends once the running calls have, and a new one is started and connected.
// Only operators may. Errors are *tool.Error.
func (c *Catalog) Restart(ctx context.Context, id string) error {
	if tool.Operator(ctx) == "" {
		return &tool.Error{Kind: tool.Denied, Message: "only an operator restarts upstreams"}
	}
	if err := (membership{c}).replace(id); err != nil {
		return err
	}
	return c.Connect(ctx, id)
}

// replace puts a new member with the same settings in the place of an upstream.
func (c membership) replace(id string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.Closed() {
		return toolcall.ClosedError()
	}
	members := slices.Clone(c.roster.Load().members)
	at := slices.IndexFunc(members, func(m *member) bool { return m.id == id })
	if at < 0 || members[at].inProcess != nil {
		return toolcall.Unknown("upstream", id, suggest.Of(id, c.roster.Load().ids()))
	}
	old := members[at]
	members[at] = newMember(*old.cfg.Load())
	c.boot(members[at : at+1])
	c.roster.Store(newRoster(members))
	c.requestRebuild()
	c.work.Go(func() { c.retire(old) })
	return nil
}

// stderrLog is a session with a process.
type stderrLog interface {
	StderrSince(after string) (lines, next string)
}

// Stderr returns the end of what the process of an upstream wrote to stderr, without secrets; with after, the complete lines since the
// position that an earlier call returned as next, or all with "0". Only operators may see it. Errors are *tool.Error.
func (c *Catalog) Stderr(ctx context.Context, id, after string) (text, next string, err error) {
	if tool.Operator(ctx) == "" {
		return "", "", &tool.Error{Kind: tool.Denied, Message: "only an operator sees the logs of upstreams"}
	}
	m, err := c.Member(id)
	if err != nil {
		return "", "", err
	}
	log, ok := m.session.(stderrLog)
	if !ok || !m.cfg.Load().HasProcess() {
		return "", "", &tool.Error{Kind: tool.Invalid, Message: "upstream " + id + " has no process here: it is reached over HTTP", Hint: "see the log of its server"}
	}
	text, next = log.StderrSince(after)
	if after == "" {
		text = m.session.State().Stderr
	}
	return text, next, nil
}
