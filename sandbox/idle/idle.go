// Package idle keeps things that wait for their next use, by what they can be used for.
package idle

import (
	"slices"
	"sync"
)

// Set holds things by key. Its zero value is empty. It is safe for concurrent use.
type Set[K, V comparable] struct {
	mu    sync.Mutex
	byKey map[K][]V // in the order of Put
}

// Put adds a thing.
func (s *Set[K, V]) Put(key K, v V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[K][]V{}
	}
	s.byKey[key] = append(s.byKey[key], v)
}

// Take removes and returns the thing with the highest rank, of several with that rank the one that was put last. It returns
// false if there is none.
func (s *Set[K, V]) Take(key K, rank func(V) int) (best V, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	highest := 0
	for _, v := range slices.Backward(s.byKey[key]) {
		if r := rank(v); !ok || r > highest {
			best, highest, ok = v, r, true
		}
	}
	if ok {
		s.removeFrom(key, func(v V) bool { return v == best })
	}
	return best, ok
}

// Remove removes and returns all things that match.
func (s *Set[K, V]) Remove(match func(V) bool) (removed []V) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.byKey {
		removed = append(removed, s.removeFrom(key, match)...)
	}
	return removed
}

// removeFrom is called with mu held.
func (s *Set[K, V]) removeFrom(key K, match func(V) bool) (removed []V) {
	left := slices.DeleteFunc(s.byKey[key], func(v V) bool {
		gone := match(v)
		if gone {
			removed = append(removed, v)
		}
		return gone
	})
	if s.byKey[key] = left; len(left) == 0 {
		delete(s.byKey, key)
	}
	return removed
}

// Each calls a function with all things. The set does not change until it returns.
func (s *Set[K, V]) Each(call func(K, V)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, all := range s.byKey {
		for _, v := range all {
			call(key, v)
		}
	}
}

// Count returns how many things a key has, and how many there are in total.
func (s *Set[K, V]) Count(key K) (n, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.byKey {
		total += len(all)
	}
	return len(s.byKey[key]), total
}
