package history

import (
	"math/bits"
	"strings"
)

// A signature says which texts a record cannot contain, so that a search reads few records: it is a Bloom filter of the pairs and
// triples of bytes in the record's text in lower case. Its length is a power of two.
type signature []uint64

const (
	// maxSignature is the maximum length of a signature in words, minSignature the minimum.
	maxSignature, minSignature = 128, 4
	// A signature is halved while at most one of maxFill bits of the result would be set.
	maxFill = 4
)

// newSignature returns the signature of a text in lower case.
func newSignature(text string) signature {
	s := make(signature, maxSignature)
	for gram := range grams(text) {
		s.set(gram)
	}
	for len(s) > minSignature {
		half := s.halved()
		if half.ones()*maxFill > len(half)*64 {
			break
		}
		s = half
	}
	return append(signature(nil), s...) // of the length that is needed
}

// mayContain reports whether the text may contain a part in lower case. It never reports false for a part that it contains.
func (s signature) mayContain(part string) bool {
	for gram := range grams(part) {
		if at := gram % uint32(len(s)*64); s[at/64]&(1<<(at%64)) == 0 { //nolint:gosec // at most 8192 bits
			return false
		}
	}
	return true
}

func (s signature) set(gram uint32) {
	at := gram % (maxSignature * 64)
	s[at/64] |= 1 << (at % 64)
}

// halved returns the signature of half the length: a hash that is taken modulo a power of two keeps its last digits.
func (s signature) halved() signature {
	half := make(signature, len(s)/2)
	for i := range half {
		half[i] = s[i] | s[i+len(half)]
	}
	return half
}

func (s signature) ones() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// grams yields hashes of the pairs and triples of bytes in a text.
func grams(text string) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for i := 0; i+1 < len(text); i++ {
			pair := uint32(text[i])<<8 | uint32(text[i+1])
			if !yield(mix(pair | 1<<24)) {
				return
			}
			if i+2 < len(text) && !yield(mix(pair<<8|uint32(text[i+2])|1<<25)) {
				return
			}
		}
	}
}

// mix spreads the bits of a number (the finalizer of MurmurHash3).
func mix(n uint32) uint32 {
	n ^= n >> 16
	n *= 0x85ebca6b
	n ^= n >> 13
	n *= 0xc2b2ae35
	return n ^ n>>16
}

// lowerSearched returns the texts of a record in which a search looks, in lower case.
func (r Record) lowerSearched() string { return strings.ToLower(r.searched()) }
