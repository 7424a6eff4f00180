package catalog

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
	"sallyport/internal/watch"
)

// patrolEvery is the interval of checks for approvals and logins by other
// processes.
const patrolEvery = 2 * time.Second

// login is an authorizer that knows the time of the last login.
type login interface{ Status() (oauth.Status, error) }

var _ login = (*oauth.Handler)(nil)

// openBook returns nil if there is no lock file in the options.
func openBook(opts Options) (*trust.Book, error) {
	if opts.LockFile == "" {
		return nil, nil
	}
	dir := ""
	if opts.CacheDir != "" {
		dir = filepath.Join(opts.CacheDir, "trust")
	}
	return trust.Open(opts.LockFile, &trust.Options{Logger: opts.Logger, Dir: dir})
}

// patrol polls for approvals and logins by other processes, until ctx ends.
func (c reviews) patrol(ctx context.Context) {
	seen := watch.FileState(c.opts.LockFile)
	for sleep.For(ctx, patrolEvery) == nil {
		if now := watch.FileState(c.opts.LockFile); c.book != nil && now != seen {
			seen = now
			c.review()
		}
		for _, m := range c.roster.Load().members {
			m.unpark()
		}
	}
}

// review checks all offers again.
func (c reviews) review() {
	for _, m := range c.roster.Load().members {
		<-m.booted
		if membership(c).retake(m) {
			membership(c).show(m)
		}
	}
}

// unpark retries a session that is parked for a login, once a user has logged in.
func (m *member) unpark() {
	<-m.booted
	state := m.session.State()
	if m.login == nil || state.Status != upstream.Parked || !state.Login {
		return
	}
	status, err := m.login.Status()
	if err != nil || !status.LoggedIn || !status.Since.After(state.Since) && !status.Renewed.After(state.Since) {
		return
	}
	m.session.Reset()
	m.poke()
}

// poke ends the pause before the next attempt to connect, if there is one.
func (m *member) poke() {
	select {
	case m.poked <- struct{}{}:
	default:
	}
}

// held returns the tools that must not be called, by their wire names.
func (c reviews) held(m *member, tools []tool.Tool) map[string]trust.Held {
	if c.book == nil || m.own != nil {
		return nil
	}
	up := m.cfg.Load()
	list, err := c.book.Check(up.Name, up.Trust, tools)
	if err != nil {
		c.log.Warn("check definitions", "upstream", m.id, "error", err)
	}
	held := make(map[string]trust.Held, len(list))
	for _, h := range list {
		held[h.Name] = h
	}
	return held
}

// quarantined returns the error for a call of a held tool.
func quarantined(id tool.ID, name string, held trust.Held) *tool.Error {
	return &tool.Error{
		Kind: tool.Denied, Message: fmt.Sprintf("tool %s is quarantined: %s", id, WhyHeld(held.Reason)),
		Hint: fmt.Sprintf("a person can look at it with `sallyport upstreams review %s`", name),
	}
}

// WhyHeld returns why a definition is held, without text of the upstream.
func WhyHeld(reason string) string {
	switch reason {
	case trust.ReasonChanged:
		return "its definition changed"
	case trust.ReasonNew:
		return "it is new and nobody has approved it"
	}
	return "its definition looks like an attack"
}
