package trust

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/sanitize"
)

// definition identifies one definition of a tool.
type definition struct{ upstream, name, digest string }

func (h Held) definition() definition { return definition{h.Upstream, h.Name, h.Digest} }

func (d definition) compare(other definition) int {
	return cmp.Or(cmp.Compare(d.upstream, other.upstream), cmp.Compare(d.name, other.name), cmp.Compare(d.digest, other.digest))
}

func (d definition) format() string { return d.upstream + " " + quote(d.name) + " " + d.digest }

func (d definition) pinnedAndRejected() error {
	return fmt.Errorf("tool %q of %s is pinned and rejected with the same digest; keep one of the lines", sanitize.Line(d.name, 80), d.upstream)
}

// Rejection is the decision of a person that a definition must not be used. It is about that
// definition only: another one of the same tool waits for a decision. The lock file
// has a line for each:
//
//	rejected: {"by":"ada","at":"2026-05-01T12:00:00Z","reason":"it asks for keys"} github "create_issue" 60303ae22b998861bce3b28f33eec1be
type Rejection struct {
	// By is the operator, At the time of the rejection.
	By string    `json:"by"`
	At time.Time `json:"at"`
	// Reason is what the operator wrote, one line of at most [MaxReason] characters, or "".
	Reason string `json:"reason,omitempty"`
}

const (
	// MaxReason is the maximum length of the reason of a rejection, in characters, maxBy that of the operator's name.
	MaxReason, maxBy = 300, 200
	// rejectedMark begins the lines of rejected definitions; no name of an upstream has a colon.
	rejectedMark = "rejected: "
)

// IsRejected reports whether a person rejected the definition.
func (h Held) IsRejected() bool { return h.Rejection != Rejection{} }

// newRejection bounds the texts.
func newRejection(by, reason string, at time.Time) Rejection {
	return Rejection{By: cmp.Or(sanitize.Line(by, maxBy), "?"), At: at.UTC().Truncate(time.Second), Reason: sanitize.Line(reason, MaxReason)}
}

func (r Rejection) format() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // cannot fail: strings, and a time that was checked
	return strings.TrimRight(b.String(), "\n")
}

// parseRejected parses a line without its mark.
func (l lock) parseRejected(line string) error {
	var r Rejection
	dec := json.NewDecoder(strings.NewReader(line))
	if err := dec.Decode(&r); err != nil || r != newRejection(r.By, r.Reason, r.At) || r.At.Year() < 2000 {
		return fmt.Errorf(`no {"by": ..., "at": ..., "reason": ...} that says who rejected it, and when: %q`, sanitize.Line(line, 80))
	}
	d, err := parseDefinition(strings.TrimPrefix(line[dec.InputOffset():], " "))
	switch _, again := l.rejected[d]; {
	case err != nil:
		return err
	case again:
		return fmt.Errorf("tool %q of %s is rejected twice with the same digest; keep one of the lines", sanitize.Line(d.name, 80), d.upstream)
	case l.pins[d.upstream][d.name] == d.digest:
		return d.pinnedAndRejected()
	}
	l.rejected[d] = r
	return nil
}

// pin pins a definition, if its tool has no pin and it is not rejected, or with replace in any case.
func (l lock) pin(d definition, replace bool) {
	_, rejected := l.rejected[d]
	if !replace && (rejected || l.pins[d.upstream][d.name] != "") {
		return
	}
	delete(l.rejected, d)
	l.pins.set(d.upstream, d.name, d.digest)
}

// pinAll pins the definitions of tools without a pin, except rejected ones.
func (l lock) pinAll(all pins) {
	for up, tools := range all {
		for name, digest := range tools {
			l.pin(definition{up, name, digest}, false)
		}
	}
}

// Reject records that held definitions must not be used, for a reason or "": those that Held returned, and none that has
// arrived since. They stay held, also after a restart and under any policy, until they are approved. The error names those
// that are no longer held, or have another digest; the others are rejected nevertheless.
func (b *Store) Reject(by, reason string, held ...Held) error {
	still, err := b.stillHeld("reject", held)
	b.mu.Lock()
	defer b.mu.Unlock()
	r, errs := newRejection(by, reason, time.Now()), []error{err}
	var valid []definition
	for _, h := range still {
		if !isValidName(h.Name) {
			errs = append(errs, fmt.Errorf("reject %.80q: invalid name for the lock file", h.Name))
			continue
		}
		valid = append(valid, h.definition())
	}
	if len(valid) == 0 {
		return errors.Join(errs...)
	}
	err = b.update(func(l lock) {
		for _, d := range valid {
			if l.pins[d.upstream][d.name] == d.digest { // approved meanwhile
				errs = append(errs, fmt.Errorf("reject %q of %s: %w with this digest", d.name, d.upstream, ErrNotHeld))
				continue
			}
			l.rejected[d] = r
		}
	})
	return errors.Join(append(errs, err)...)
}
