package redact

import (
	"bytes"
	"slices"
)

// maxHeld is how much of a text a [Stream] keeps back at most, in bytes. Secrets that overlap each other for longer than that
// are hidden one by one.
const maxHeld = 64 << 10

// Stream hides secrets in a text that comes in pieces, also where one begins in a piece and ends in another. What may be
// the beginning of a secret is kept back until more is known. It is for one goroutine at a time.
type Stream struct {
	mask *Mask
	held []byte
}

// Stream returns a text's beginning.
func (m *Mask) Stream() *Stream { return &Stream{mask: m} }

// Next takes a piece and returns what can be shown now. What it returns is the caller's, or the piece itself.
func (s *Stream) Next(piece []byte) []byte {
	if s.mask == nil {
		return piece
	}
	all := piece
	if len(s.held) > 0 {
		all = append(s.held, piece...)
		s.held = nil
	}
	cut := s.mask.finder().sure(all)
	s.held = bytes.Clone(all[cut:])
	return s.mask.Hide(all[:cut])
}

// End returns what was kept back.
func (s *Stream) End() []byte {
	held := s.held
	s.held = nil
	return s.mask.Hide(held)
}

// sure returns how much of data can be looked at by itself: neither does a text go over its end that is all there, nor may one begin
// before it of which more is to come.
func (f *finder) sure(data []byte) int {
	cut := len(data) - f.begun(data)
	found := f.find(data)
	for i := len(found) - 1; i >= 0 && found[i].end > cut; i-- {
		switch {
		case found[i].start >= cut:
		case len(data)-found[i].start > maxHeld:
			return found[i].end
		default:
			cut = found[i].start
		}
	}
	return cut
}

// begun returns how long the longest end of data is that a text begins with, which is longer itself.
func (f *finder) begun(data []byte) int {
	longest := 0
	if len(f.forms) > 0 {
		longest = len(f.forms[0]) - 1
	}
	for n := min(longest, len(data)); n > 0; n-- {
		end := data[len(data)-n:]
		if n >= block && !f.starts.has(hashAt(end, block)) {
			continue
		}
		if f.beginsWith(end) {
			return n
		}
	}
	return 0
}

// beginsWith reports whether a text begins with part, and continues.
func (f *finder) beginsWith(part []byte) bool {
	at, same := slices.BinarySearchFunc(f.sorted, part, bytes.Compare)
	if same {
		at++
	}
	return at < len(f.sorted) && bytes.HasPrefix(f.sorted[at], part)
}

// hashes is a set of them.
type hashes [1 << hashBits / 64]uint64

func (h *hashes) add(x uint16)      { h[x/64] |= 1 << (x % 64) }
func (h *hashes) has(x uint16) bool { return h[x/64]&(1<<(x%64)) != 0 }
