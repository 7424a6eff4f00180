package toolsearch

import (
	"slices"
	"sync"

	"sallyport/internal/tool"
)

// Shown records the signatures that one reader of answers has, so that later answers do not repeat them. The zero value
// has none. It is safe for concurrent use.
type Shown struct {
	mu         sync.Mutex
	signatures []shownSignature // oldest first
}

// shownSignature is the signature of a tool as it was shown; one that changed is shown again.
type shownSignature struct {
	id   tool.ID
	text string
}

// maxShown is how many signatures a reader is expected to remember.
const maxShown = 64

// has reports whether the reader has a signature.
func (s *Shown) has(of shownSignature) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.signatures, of)
}

// add records signatures as the latest ones.
func (s *Shown) add(list []shownSignature) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signatures = slices.DeleteFunc(s.signatures, func(of shownSignature) bool { return slices.Contains(list, of) })
	s.signatures = append(s.signatures, list...)
	s.signatures = s.signatures[max(0, len(s.signatures)-maxShown):]
}
