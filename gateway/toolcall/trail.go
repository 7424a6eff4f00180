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

// Origin is the first source of a label.
type Origin struct {
	Label string `json:"label"`
	// Tool is the tool that returned it. File is the path in a workspace of a file that was written after such results were read.
	Tool string `json:"tool,omitempty"`
	File string `json:"file,omitempty"`
	// Execution made the call, or wrote the file; "" is a client's call.
	Execution string    `json:"execution,omitempty"`
	Time      time.Time `json:"time"`
}

// Trail holds the labels of what an execution or a session has read, and counts its calls. It is safe for concurrent use.
type Trail struct {
	mu    sync.Mutex
	read  map[string]Origin
	calls map[string]int64
}

// Add adds labels. The first origin of a label is kept.
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

// Count counts a call of a tool.
func (t *Trail) Count(id tool.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]int64{}
	}
	t.calls[id.Upstream]++
	t.calls[id.Upstream+"."+strings.ReplaceAll(id.Name, "/", ".")]++
}

// Counts returns the number of calls of each tool and upstream.
func (t *Trail) Counts() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

// Origins returns the origins, sorted by label.
func (t *Trail) Origins() []Origin {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.read), func(a, b Origin) int { return cmp.Compare(a.Label, b.Label) })
}
