package store

import (
	"bytes"
	"encoding/binary"
	"slices"
)

const (
	// maxBits and maxBytes are the sizes up to which a record is tried with each bit, and with each byte, changed: to find one that the
	// checksum fits takes some 100 ms at most.
	maxBits  = 16 << 10
	maxBytes = 1 << 10
	// maxRestores is how many damaged records of a block are tried.
	maxRestores = 16
)

// restore returns a damaged record as it was: what has one byte changed, or its lengths, which are in no checksum; nil if it cannot.
func (b *blockReader) restore(region []byte) ([]byte, blockRecord) {
	if b.tried++; len(region) < emptySize || b.tried > maxRestores {
		return nil, blockRecord{}
	}
	fixed := bytes.Clone(region)
	own := &blockReader{stream: b.stream, data: fixed, sum: b.sum}
	if r, ok := own.resized(); ok {
		return fixed, r
	}
	copy(fixed, region)
	bits := []byte{1, 2, 4, 8, 16, 32, 64, 128}
	if r, ok := own.changed(bits); len(fixed) <= maxBits && ok {
		return fixed, r
	}
	copy(fixed, region)
	if r, ok := own.changed(otherBytes(bits)); len(fixed) <= maxBytes && ok {
		return fixed, r
	}
	return nil, blockRecord{}
}

// otherBytes are all differences between two bytes but these.
func otherBytes(bits []byte) (all []byte) {
	for i := range 255 {
		if d := byte(i + 1); !slices.Contains(bits, d) {
			all = append(all, d)
		}
	}
	return all
}

// resized gives the one record of a block the lengths that its checksum fits.
func (b *blockReader) resized() (blockRecord, bool) {
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

// changed finds the one byte by one of these differences with which the checksum fits.
func (b *blockReader) changed(differences []byte) (blockRecord, bool) {
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
