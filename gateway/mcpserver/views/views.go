// Package views knows which user interfaces (MCP Apps) clients of the two tools have read, and which tools those may call. Its main
// type is [Views].
package views

import (
	"slices"
	"sync"

	"sallyport/gateway/catalog"
	"sallyport/internal/mcpapp"
	"sallyport/internal/tool"
)

const (
	// maxCallers bounds the callers that are remembered, maxRead the upstreams of each. The first ones are forgotten.
	maxCallers = 4096
	maxRead    = 64
)

// Views are the interfaces that callers have read. The zero value is ready; it is safe for concurrent use.
type Views struct {
	mu      sync.Mutex
	read    map[string][]string // the upstreams, by caller
	callers []string            // in the order of their first read
}

// Read records that a caller has read an interface of an upstream.
func (v *Views) Read(caller, upstream string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.read == nil {
		v.read = map[string][]string{}
	}
	all, known := v.read[caller]
	if slices.Contains(all, upstream) {
		return
	}
	if !known {
		v.callers = append(v.callers, caller)
	}
	v.read[caller] = keepLast(append(all, upstream), maxRead)
	for len(v.callers) > maxCallers {
		delete(v.read, v.callers[0])
		v.callers = v.callers[1:]
	}
}

func keepLast(all []string, n int) []string { return all[max(0, len(all)-n):] }

// Tool returns the tool that an interface means by a name. An interface names the tools of its upstream as that does, and the call
// does not say which interface made it: the tool is one of an upstream that the caller has read an interface of, which lets
// interfaces call it, and no other such upstream has one of that name.
func (v *Views) Tool(caller, name string, offers []catalog.UpstreamOffer) (id tool.ID, ok bool) {
	v.mu.Lock()
	read := slices.Clone(v.read[caller])
	v.mu.Unlock()
	count := 0
	for _, up := range offers {
		if !slices.Contains(read, up.ID) {
			continue
		}
		for _, t := range up.Offer.Tools {
			if t.Wire == name && mcpapp.ForApps(t.Raw) {
				id, count = t.ID, count+1
			}
		}
	}
	return id, count == 1
}
