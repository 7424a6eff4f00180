package store

import (
	"bytes"
	"encoding/binary"
	"slices"
)

const (
	// maxBits and maxBytes are the sizes up to which a record is tried with each bit, and with each byte, changed: a
	// search for a matching checksum takes some 100 ms at most.
	maxBits  = 16 << 10
	maxBytes = 1 << 10
	// maxRestores bounds the damaged records of a block that are tried.
	maxRestores = 16
)

// restore reconstructs a damaged record with one changed byte, or with wrong lengths, which no checksum covers; nil
// if it cannot.
func (b *blockReader) restore(region []byte) ([]byte, blockRecord) {
	if b.tried++; len(region) < emptySize || b.tried > maxRestores {
		return nil, blockRecord{}
	}
	fixed := bytes.Clone(region)
	own := &blockReader{stream: b.stream, data: fixed, sum: b.sum}
	if r, ok := own.restoreLengths(); ok {
		return fixed, r
	}
	copy(fixed, region)
	bits := []byte{1, 2, 4, 8, 16, 32, 64, 128}
	if r, ok := own.restoreByte(bits); len(fixed) <= maxBits && ok {
		return fixed, r
	}
	copy(fixed, region)
	if r, ok := own.restoreByte(otherBytes(bits)); len(fixed) <= maxBytes && ok {
		return fixed, r
	}
	return nil, blockRecord{}
}

// otherBytes returns all differences between two bytes except these.
func otherBytes(bits []byte) (all []byte) {
	for i := range 255 {
		if d := byte(i + 1); !slices.Contains(bits, d) {
			all = append(all, d)
		}
	}
	return all
}

// restoreLengths finds the lengths of a block's only record for which the checksum matches.
func (b *blockReader) restoreLengths() (blockRecord, bool) {
	length, subject := binary.LittleEndian.Uint32(b.data), binary.LittleEndian.Uint16(b.data[20:])
	for _, headers := range []uint32{length & headersBit, ^length & headersBit} {
		for _, s := range []uint16{subject, uint16(wordLength(b.data[recordHead:]))} { //nolint:gosec // it is checked where it is read
			binary.LittleEndian.PutUint32(b.data, uint32(len(b.data))|headers) //nolint:gosec // of at most maxOnDisk
			binary.LittleEndian.PutUint16(b.data[20:], s)
			if r, ok := b.at(0); ok {
				return r, true
			}
		}
	}
	return blockRecord{}, false
}

// restoreByte finds the byte whose change by one of these differences makes the checksum match.
func (b *blockReader) restoreByte(differences []byte) (blockRecord, bool) {
	for i := range b.data {
		for _, d := range differences {
			b.data[i] ^= d
			if r, ok := b.at(0); ok && r.size == len(b.data) {
				return r, true
			}
			b.data[i] ^= d
		}
	}
	return blockRecord{}, false
}
