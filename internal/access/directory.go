package access

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// ProviderPrefix begins the principals of OpenID providers and authorization servers. Names of tokens have another prefix, so
// that no claim can make a caller the principal of a token.
const ProviderPrefix = "oauth:"

// maxMembers bounds the number of principals in a [Directory].
const maxMembers = 10_000

// Directory has the groups of principals of a provider, as the claims said that were issued last. It is in memory only, and
// safe for concurrent use. A nil Directory knows no principal of a provider.
type Directory struct {
	mu      sync.Mutex
	members map[string]membership
}

type membership struct {
	groups []string
	issued time.Time
}

// NewDirectory returns an empty directory.
func NewDirectory() *Directory { return &Directory{members: map[string]membership{}} }

// Set sets the groups of a principal, unless claims that were issued later have set them.
func (d *Directory) Set(principal string, groups []string, issued time.Time) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.members[principal]
	if ok && known.issued.After(issued) {
		return
	}
	if !ok && len(d.members) >= maxMembers {
		d.dropOldest()
	}
	d.members[principal] = membership{slices.Clone(groups), issued}
}

// dropOldest is called with mu held.
func (d *Directory) dropOldest() {
	oldest := ""
	for name, m := range d.members {
		if oldest == "" || m.issued.Before(d.members[oldest].issued) {
			oldest = name
		}
	}
	delete(d.members, oldest)
}

// Groups returns the groups of a principal. Principals of no provider have none. It returns false if the groups are unknown,
// as after a restart until the principal calls again.
func (d *Directory) Groups(principal string) ([]string, bool) {
	if !strings.HasPrefix(principal, ProviderPrefix) {
		return []string{}, true
	}
	if d == nil {
		return nil, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.members[principal]
	return slices.Clone(known.groups), ok
}
