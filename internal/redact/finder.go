package redact

import (
	"bytes"
	"cmp"
	"slices"
)

// finder finds many texts in one pass, by the algorithm of Wu and Manber: it examines the last bytes of a window as
// long as the shortest text, and a table gives the distance to advance. Most windows need no further check.
type finder struct {
	forms  [][]byte
	window int
	// skip is the distance to advance, by the hash of the window's last bytes; 0 means that a text may begin here.
	skip [1 << hashBits]uint8
	// at lists the candidate texts, by that hash, the longest first.
	at map[uint16][][]byte
	// sorted are the texts in order, starts the hashes of their first bytes: for a stream.
	sorted [][]byte
	starts hashes
}

const (
	hashBits = 15
	// block is how many bytes at the end of a window are examined.
	block = 3
	// longestWindow keeps skips within a byte.
	longestWindow = 64
)

func hash(a, b, c byte) uint16 {
	return (uint16(a)<<10 ^ uint16(b)<<5 ^ uint16(c)) & (1<<hashBits - 1)
}

func hashAt(t []byte, end int) uint16 { return hash(t[end-3], t[end-2], t[end-1]) }

func newFinder(secrets []string) *finder {
	f := &finder{forms: formsOf(secrets), window: longestWindow, at: map[uint16][][]byte{}}
	for _, form := range f.forms {
		f.window = min(f.window, len(form))
	}
	for i := range f.skip {
		f.skip[i] = uint8(f.window - block + 1)
	}
	for _, form := range f.forms {
		for end := block; end <= f.window; end++ {
			h := hashAt(form, end)
			f.skip[h] = min(f.skip[h], uint8(f.window-end))
		}
		last := hashAt(form, f.window)
		f.at[last] = append(f.at[last], form)
		f.starts.add(hashAt(form, block))
	}
	f.sorted = slices.SortedFunc(slices.Values(f.forms), bytes.Compare)
	return f
}

// span is a part of a text.
type span struct{ start, end int }

// find returns the positions of the texts, in order; overlapping ones are merged.
func (f *finder) find(data []byte) (found []span) {
	if len(f.forms) == 0 {
		return nil
	}
	for end := f.window; end <= len(data); {
		h := hashAt(data, end)
		if skip := f.skip[h]; skip > 0 {
			end += int(skip)
			continue
		}
		found = f.add(found, data, end-f.window, h)
		end++
	}
	return found
}

// add adds the longest text that begins at start.
func (f *finder) add(found []span, data []byte, start int, h uint16) []span {
	for _, form := range f.at[h] {
		if !bytes.HasPrefix(data[start:], form) {
			continue
		}
		if n := len(found); n > 0 && start < found[n-1].end {
			found[n-1].end = max(found[n-1].end, start+len(form))
			return found
		}
		return append(found, span{start, start + len(form)})
	}
	return found
}

// longestFirst sorts texts and drops duplicates.
func longestFirst(forms [][]byte) [][]byte {
	slices.SortFunc(forms, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	return slices.CompactFunc(forms, bytes.Equal)
}
