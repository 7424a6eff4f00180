package sharedrecords

import (
	"sync"
	"time"

	"sallyport/internal/store"
)

// maxCached bounds the number of records that are remembered.
const maxCached = 4096

// cache remembers records. It is safe for concurrent use.
type cache struct {
	mu  *sync.Mutex
	all map[string]cached
}

// cached is a record as the store had it.
type cached struct {
	store.Entry

	asked time.Time // when the store was asked for it
	stale bool      // the store may have another one since
}

func newCache() cache { return cache{&sync.Mutex{}, map[string]cached{}} }

func (c cache) get(name string) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.all[name]
	return known, ok
}

// put remembers a record, unless a newer one is known, and returns the newer one.
func (c cache) put(name string, now cached) cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.all[name]
	if ok && known.Revision > now.Revision {
		return known
	}
	if !ok && len(c.all) >= maxCached {
		c.dropOldest()
	}
	c.all[name] = now
	return now
}

// dropOldest is called with mu held.
func (c cache) dropOldest() {
	oldest := ""
	for name, e := range c.all {
		if oldest == "" || e.asked.Before(c.all[oldest].asked) {
			oldest = name
		}
	}
	delete(c.all, oldest)
}

// distrust makes the next read ask the store.
func (c cache) distrust(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.all[name]; ok {
		known.stale = true
		c.all[name] = known
	}
}

func (c cache) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, name)
}
