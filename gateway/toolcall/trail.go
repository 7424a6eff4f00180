package toolcall

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/tool"
)

// Origin says what brought a label first.
type Origin struct {
	Label string `json:"label"`
	// Tool is whose result it was; File the path of a file in a workspace that somebody wrote who had read such results.
	Tool string `json:"tool,omitempty"`
	File string `json:"file,omitempty"`
	// Execution made the call, or wrote the file; "" is a client's call.
	Execution string    `json:"execution,omitempty"`
	Time      time.Time `json:"time"`
}

// Trail is what an execution or a session has read, by labels, and what it has called. It is safe for concurrent use.
type Trail struct {
	mu    sync.Mutex
	read  map[string]Origin
	calls map[string]int64
}

// Add adds labels; of several that bring one the first stays.
func (t *Trail) Add(origins ...Origin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range origins {
		if _, known := t.read[o.Label]; known {
			continue
		}
		if t.read == nil {
			t.read = map[string]Origin{}
		}
		t.read[o.Label] = o
	}
}

// Count notes that a tool was called.
func (t *Trail) Count(id tool.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]int64{}
	}
	t.calls[id.Upstream]++
	t.calls[id.Upstream+"."+strings.ReplaceAll(id.Name, "/", ".")]++
}

// Counts is how often each tool and upstream was called.
func (t *Trail) Counts() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

// Origins are what brought the labels, sorted by them.
func (t *Trail) Origins() []Origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.read), func(a, b Origin) int { return cmp.Compare(a.Label, b.Label) })
}
