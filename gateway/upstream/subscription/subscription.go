// Package subscription records what callers subscribe to at an upstream, and the level of its log. Its main type is [Set].
package subscription

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// maxURIs is the number of resources of one upstream that callers may subscribe to.
const maxURIs = 1000

// Set holds the callers' subscriptions and log level. It outlives a link: they are
// restored on the next one. It is safe for concurrent use.
type Set struct {
	mu      sync.Mutex
	uris    map[string]bool // subscribed resources
	level   json.RawMessage // of log messages; nil if not set
	changed chan struct{}   // closed and replaced when the uris change
}

// New returns an empty set.
func New() *Set {
	return &Set{uris: map[string]bool{}, changed: make(chan struct{})}
}

// Put adds or removes a resource. More than the limit are not added.
func (s *Set) Put(uri string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uris[uri] == on || on && len(s.uris) == maxURIs {
		return
	}
	if on {
		s.uris[uri] = true
	} else {
		delete(s.uris, uri)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// SetLevel sets the level of log messages.
func (s *Set) SetLevel(level json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// Level returns the level of log messages, nil if it was not set.
func (s *Set) Level() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// Snapshot returns the URIs, and a channel that is closed when they change.
func (s *Set) Snapshot() ([]string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.uris)), s.changed
}
