// Package redact hides known secrets in bytes. A [Book] holds the secrets of all settings and the tokens in use, by
// owner; a [Mask] hides them in the output of one owner, in each encoded form: plain, in JSON, in URLs, in HTML, in
// base64, in hex. judge.go decides which values of the settings are secret.
package redact

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// Hidden replaces a secret.
	Hidden = "[hidden]"
	// Shortest is the minimum length of a secret that is hidden, in bytes: shorter ones would match too much unrelated
	// text.
	Shortest = 6
	// maxTokens is how many recent tokens of an owner are hidden.
	maxTokens = 16
)

// Book holds all known secrets. The zero value is empty. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	fixed   map[string][]string // by owner
	tokens  map[string][]string
	version atomic.Int64
}

// Set replaces the secrets of the settings, by owner ("" is the gateway itself).
func (b *Book) Set(secrets map[string][]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixed = maps.Clone(secrets)
	b.version.Add(1)
}

// Learn adds a token that an owner uses. The last sixteen of each owner are remembered.
func (b *Book) Learn(owner, token string) {
	if len(token) < Shortest {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.tokens[owner]
	if slices.Contains(last, token) {
		return
	}
	if b.tokens == nil {
		b.tokens = map[string][]string{}
	}
	b.tokens[owner] = append(slices.Clone(last[max(0, len(last)-maxTokens+1):]), token)
	b.version.Add(1)
}

// For returns the mask for texts of an owner: all of its own secrets, and those of others that are unlikely to be
// ordinary words. more are further ones of its own.
func (b *Book) For(owner string, more ...string) *Mask {
	return &Mask{book: b, owner: owner, extra: more}
}

// secretsOf returns the secrets that a mask of an owner hides.
func (b *Book) secretsOf(owner string) (secrets []string, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range []map[string][]string{b.fixed, b.tokens} {
		for of, list := range all {
			for _, s := range list {
				if of == owner || isStrong(s) {
					secrets = append(secrets, s)
				}
			}
		}
	}
	return secrets, b.version.Load()
}

// isStrong reports whether a secret is unlikely to occur in an unrelated text.
func isStrong(s string) bool {
	const least = 8
	return len(s) >= least && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") != ""
}

// Mask hides secrets. Nil hides nothing. It is safe for concurrent use.
type Mask struct {
	book  *Book
	owner string
	extra []string
	now   atomic.Pointer[compiled]
}

// compiled is the finder for a version of the book.
type compiled struct {
	version int64
	finder  *finder
}

func (m *Mask) finder() *finder {
	if k := m.now.Load(); k != nil && k.version == m.book.version.Load() {
		return k.finder
	}
	secrets, version := m.book.secretsOf(m.owner)
	k := &compiled{version, newFinder(append(secrets, m.extra...))}
	m.now.Store(k)
	return k.finder
}

// Hide returns data without the secrets; the same slice if it has none.
func (m *Mask) Hide(data []byte) []byte {
	if m == nil {
		return data
	}
	found := m.finder().find(data)
	if len(found) == 0 {
		return data
	}
	var b bytes.Buffer
	b.Grow(len(data))
	at := 0
	for _, f := range found {
		b.Write(data[at:f.start])
		b.WriteString(Hidden)
		at = f.end
	}
	b.Write(data[at:])
	return b.Bytes()
}

// Text is Hide for a text.
func (m *Mask) Text(s string) string {
	if m == nil || s == "" {
		return s
	}
	hidden := m.Hide([]byte(s))
	if len(hidden) == len(s) && string(hidden) == s {
		return s
	}
	return string(hidden)
}
