package trust

import (
	"cmp"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"unicode/utf8"

	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// check is one check of all tools of one upstream.
type check struct {
	store    *Store
	upstream string
	policy   config.Trust
	listed   []listedTool
	others   map[string]bool // names of other upstreams' tools; nil until needed
	pinned   map[string]string
	replace  bool // digests in pinned replace existing pins
	held     map[string]Held
}

// listedTool is a listed definition with its digest.
type listedTool struct {
	tool      tool.Tool
	canonical []byte
	digest    string
}

// digestTools computes the digests of tools. It is most of the work of a check, and needs no lock.
func digestTools(tools []tool.Tool) []listedTool {
	all := make([]listedTool, len(tools))
	for i, t := range tools {
		canonical := Canonical(t)
		all[i] = listedTool{t, canonical, digestOf(canonical)}
	}
	return all
}

// checkAll decides on every definition.
func (c *check) checkAll() {
	c.pinned = map[string]string{}
	for _, s := range c.listed {
		c.checkOne(s)
	}
}

// checkOne decides on one definition. A second one under the same name counts as a
// change of the first.
func (c *check) checkOne(s listedTool) {
	t, digest := s.tool, s.digest
	pin := cmp.Or(c.pinned[t.Wire], c.store.lock.pins[c.upstream][t.Wire])
	rejection, rejected := c.store.lock.rejected[definition{c.upstream, t.Wire, digest}]
	switch {
	case !isValidName(t.Wire):
		pin = "" // the file cannot have such a name
	case rejected: // a person has decided about this definition, the policy is about all
	case pin == digest:
		return
	case c.policy == config.TrustAllow:
		if pin != "" {
			c.store.log.Warn("tool definition changed", c.attrs(t, digest)...)
			c.replace = true
		}
		c.pinned[t.Wire] = digest
		return
	}
	h := Held{Upstream: c.upstream, Name: t.Wire, Tool: t, Digest: digest, Findings: c.findings(t), New: s.canonical, Rejection: rejection}
	switch {
	case pin != "":
		h.Reason, h.Old = ReasonChanged, c.store.reviews.definition(c.upstream, t.Wire, pin)
	case c.policy == config.TrustReview:
		h.Reason = ReasonNew
	case len(h.Findings) > 0:
		h.Reason = ReasonSuspicious
	case rejected:
		h.Reason = ReasonNew
	default:
		c.pinned[t.Wire] = digest
		return
	}
	if c.held[t.Wire].Digest == digest {
		return
	}
	h.Tool.Raw = nil
	c.held[t.Wire] = h
	if !rejected && c.store.waiting[c.upstream][t.Wire].Digest != digest {
		c.store.log.Warn("tool is held for review", append(c.attrs(t, digest), "reason", h.Reason)...)
	}
}

func (c *check) attrs(t tool.Tool, digest string) []any {
	return []any{slog.String("upstream", c.upstream), slog.String("tool", sanitize.Line(t.Wire, 80)), slog.String("digest", shortDigest(digest))}
}

func (c *check) findings(t tool.Tool) []Finding {
	if c.others == nil {
		c.others = c.store.otherTools(c.upstream)
	}
	return Inspect(t, c.others)
}

// pin writes digests into the lock file. A pin and a rejection of another process stay,
// unless replace is set.
func (b *Store) pin(upstream string, digests map[string]string, replace bool) error {
	for name, digest := range digests {
		if !isValidName(name) {
			return fmt.Errorf("pin %.80q: invalid name for the lock file", name)
		}
		b.lock.pins.set(upstream, name, digest)
		b.unsaved.set(upstream, name, digest)
	}
	return b.update(func(l lock) {
		for name, digest := range digests {
			l.pin(definition{upstream, name, digest}, replace)
		}
	})
}

// update adds the pins to the lock file, or to the lock in the store, that could not be written before, and changes it.
func (b *Store) update(change func(lock)) error {
	write := func(change func(lock)) (lock, error) { return updateLock(b.path, change) }
	if b.shared != nil {
		write = b.shared.update
	}
	fresh, err := write(func(l lock) {
		l.pinAll(b.unsaved)
		change(l)
	})
	if err != nil {
		return fmt.Errorf("write lock file: %w", err)
	}
	b.lock, b.unsaved, b.state = fresh, pins{}, b.State()
	return nil
}

// isValidName reports whether a name is valid in the lock file.
func isValidName(name string) bool { return len(name) <= maxName && utf8.ValidString(name) }

func keys[M ~map[string]V, V any](m M) iter.Seq[string] { return maps.Keys(m) }

func shortDigest(digest string) string { return digest[:min(len(digest), 12)] }
