package catalog

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/sleep"
	"sallyport/internal/tool"
)

// trustPollInterval is the interval of checks for approvals and logins by other
// processes.
const trustPollInterval = 2 * time.Second

// login is an authorizer that knows the time of the last login.
type login interface{ Status() (oauth.Status, error) }

var _ login = (*oauth.Handler)(nil)

// openTrustStore returns nil if there is no lock file in the options.
func openTrustStore(opts Options) (*trust.Store, error) {
	if opts.LockFile == "" {
		return nil, nil
	}
	dir := ""
	if opts.CacheDir != "" {
		dir = filepath.Join(opts.CacheDir, "trust")
	}
	return trust.Open(opts.LockFile, &trust.Options{Logger: opts.Logger, Dir: dir, Records: opts.Records})
}

// watchTrust polls for reviews of definitions and logins by other processes, until ctx ends.
func (c reviews) watchTrust(ctx context.Context) {
	var seen trust.State
	if c.trustStore != nil {
		seen = c.trustStore.State()
	}
	for sleep.For(ctx, trustPollInterval) == nil {
		if c.trustStore != nil {
			if now := c.trustStore.State(); now != seen {
				seen = now
				c.review()
			}
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
		if membership(c).reevaluate(m) {
			membership(c).markStale(m)
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
	if err != nil || !status.LoggedIn || !status.IsSince(state.Since) && !status.Renewed.After(state.Since) {
		return
	}
	m.session.Reset()
	m.wake()
}

// wake ends the pause before the next attempt to connect, if there is one.
func (m *member) wake() {
	select {
	case m.wakeup <- struct{}{}:
	default:
	}
}

// checkTools returns the tools that must not be called, by their wire names.
func (c reviews) checkTools(m *member, tools []tool.Tool) map[string]trust.Held {
	if c.trustStore == nil || m.inProcess != nil {
		return nil
	}
	up := m.cfg.Load()
	list, err := c.trustStore.Check(up.Name, up.Trust, tools)
	if err != nil {
		c.log.Warn("check definitions", "upstream", m.id, "error", err)
	}
	held := make(map[string]trust.Held, len(list))
	for _, h := range list {
		held[h.Name] = h
	}
	return held
}

// quarantinedError returns the error for a call of a held tool.
func quarantinedError(id tool.ID, name string, held trust.Held) *tool.Error {
	if rejected := newHold(held).Rejected; rejected != "" {
		return &tool.Error{Kind: tool.Denied, Message: fmt.Sprintf("tool %s is not available: %s", id, rejected), Hint: "use another tool"}
	}
	return &tool.Error{
		Kind: tool.Denied, Message: fmt.Sprintf("tool %s is quarantined: %s", id, WhyHeld(held.Reason)),
		Hint: fmt.Sprintf("a person can look at it with `sallyport upstreams review %s`", name),
	}
}

// Hold says why a tool is quarantined.
type Hold struct {
	// Reason is one of trust's, see [WhyHeld].
	Reason string
	// Rejected says in words that an operator rejected the definition, and why; "" if it waits for a review.
	Rejected string
}

func newHold(h trust.Held) Hold {
	if !h.IsRejected() {
		return Hold{Reason: h.Reason}
	}
	return Hold{h.Reason, strings.TrimSuffix("rejected by an operator: "+h.Rejection.Reason, ": ")}
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
