package recognizer

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"sallyport/internal/pii"
)

// maxEntries bounds a cache: a text counts one, and each entity in it.
const maxEntries = 50_000

// key is a digest: a cache holds no texts.
type key [sha256.Size]byte

func keyOf(who, text string) key { return key(sha256.Sum256([]byte(who + "\x00" + text))) }

// cache holds the findings in the most recent texts.
type cache struct {
	mu     sync.Mutex
	known  map[key]*list.Element // of kept
	recent list.List             // newest first
	size   int
}

type cacheEntry struct {
	key   key
	found []pii.Finding
}

func (k cacheEntry) size() int { return 1 + len(k.found) }

func newCache() *cache { return &cache{known: map[key]*list.Element{}} }

func (c *cache) get(k key) (found []pii.Finding, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.known[k]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(cacheEntry).found, true //nolint:forcetypeassert // nothing else is put there
}

func (c *cache) put(k key, found []pii.Finding) {
	entry := cacheEntry{k, found}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.known[k]; known || entry.size() > maxEntries/10 {
		return
	}
	c.known[k] = c.recent.PushFront(entry)
	for c.size += entry.size(); c.size > maxEntries; {
		oldest := c.recent.Remove(c.recent.Back()).(cacheEntry) //nolint:forcetypeassert // nothing else is put there
		delete(c.known, oldest.key)
		c.size -= oldest.size()
	}
}
