package redact

import (
	"bytes"
	"slices"
)

// maxBuffered bounds how much of a text a [Stream] buffers, in bytes. Overlapping secrets that are longer together are
// hidden one by one.
const maxBuffered = 64 << 10

// Stream hides secrets in a text that comes in pieces, also if one spans pieces. A possible start of a secret is
// buffered until more is known. It is for one goroutine at a time.
type Stream struct {
	mask     *Mask
	buffered []byte
}

// Stream returns a stream at its start.
func (m *Mask) Stream() *Stream { return &Stream{mask: m} }

// Next adds a piece and returns the text that can be output now. The result is the caller's, or the piece itself.
func (s *Stream) Next(piece []byte) []byte {
	if s.mask == nil {
		return piece
	}
	all := piece
	if len(s.buffered) > 0 {
		all = append(s.buffered, piece...)
		s.buffered = nil
	}
	cut := s.mask.finder().safeLen(all)
	s.buffered = bytes.Clone(all[cut:])
	return s.mask.Hide(all[:cut])
}

// End returns the buffered rest.
func (s *Stream) End() []byte {
	held := s.buffered
	s.buffered = nil
	return s.mask.Hide(held)
}

// safeLen returns the length of the prefix of data that can be processed by itself: no secret extends over its end or
// may begin before it and continue after data.
func (f *finder) safeLen(data []byte) int {
	cut := len(data) - f.partialLen(data)
	found := f.find(data)
	for i := len(found) - 1; i >= 0 && found[i].end > cut; i-- {
		switch {
		case found[i].start >= cut:
		case len(data)-found[i].start > maxBuffered:
			return found[i].end
		default:
			cut = found[i].start
		}
	}
	return cut
}

// partialLen returns the length of the longest suffix of data that is a proper prefix of a secret.
func (f *finder) partialLen(data []byte) int {
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

// beginsWith reports whether a secret begins with part, and continues.
func (f *finder) beginsWith(part []byte) bool {
	at, same := slices.BinarySearchFunc(f.sorted, part, bytes.Compare)
	if same {
		at++
	}
	return at < len(f.sorted) && bytes.HasPrefix(f.sorted[at], part)
}

// hashes is a set of hashes.
type hashes [1 << hashBits / 64]uint64

func (h *hashes) add(x uint16)      { h[x/64] |= 1 << (x % 64) }
func (h *hashes) has(x uint16) bool { return h[x/64]&(1<<(x%64)) != 0 }
