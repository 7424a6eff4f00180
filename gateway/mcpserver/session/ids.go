package session

import (
	"crypto/rand"
	"sync"
)

// IDs makes the IDs of new sessions of one server. A session of another gateway is opened with the ID that it has.
type IDs struct {
	prefix string

	mu     sync.Mutex // from the beginning of open until Next
	wanted string
	taken  func()
}

// NewIDs returns IDs with a prefix.
func NewIDs(prefix string) *IDs { return &IDs{prefix: prefix} }

// Next returns the ID of a new session. The SDK calls it once in a request that opens a session, before it reads the body.
func (i *IDs) Next() string {
	id := i.wanted
	if i.taken != nil {
		i.taken()
	}
	if id == "" {
		return i.prefix + rand.Text()
	}
	return id
}

// open calls serve, which opens a session with an ID, or "" for a new one. It serializes the short time until Next is called, as the
// SDK does not say for which request it asks.
func (i *IDs) open(id string, serve func()) {
	i.mu.Lock()
	unlock := sync.OnceFunc(func() {
		i.wanted, i.taken = "", nil
		i.mu.Unlock()
	})
	defer unlock()
	i.wanted, i.taken = id, unlock
	serve()
}
