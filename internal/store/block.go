package store

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A block is a file of the engine's with records one after the other, each of: a length of all of it (4 bytes, with a bit for
// headers), a number (8), a time (8), the length of the subject (2), the subject, headers behind their length (4) if there are any,
// the value, a checksum (8). The checksum is of all but the lengths. A number may have a bit for what is erased or marks an erasure.
const (
	recordHead = 22
	recordSum  = 8
	emptySize  = recordHead + recordSum
	maxOnDisk  = 32 << 20

	headersBit   = 1 << 31
	erasedBit    = 1 << 63
	tombstoneBit = 1 << 62
)

// blockRecord is one record of a block.
type blockRecord struct {
	number  uint64 // with its bits
	subject string
	size    int // of all of it
}

func (r blockRecord) marks() bool { return r.number&(erasedBit|tombstoneBit) != 0 }

func (r blockRecord) plainNumber() uint64 { return r.number &^ (erasedBit | tombstoneBit) }

// blockReader reads the records of one block.
type blockReader struct {
	stream string
	data   []byte
	sum    *checksum
	tried  int // damaged records
}

// newBlockReader reads the block of that number. Each block has checksums of its own.
func newBlockReader(stream string, number int, data []byte) *blockReader {
	return &blockReader{stream: stream, data: data, sum: newChecksum(fmt.Sprintf("%s-%d", stream, number))}
}

// at reads the record that begins at an offset, if there is a whole one that its checksum fits.
func (b *blockReader) at(offset int) (blockRecord, bool) {
	if len(b.data)-offset < emptySize {
		return blockRecord{}, false
	}
	size := binary.LittleEndian.Uint32(b.data[offset:]) &^ headersBit
	if size > maxOnDisk || int(size) > len(b.data)-offset {
		return blockRecord{}, false
	}
	return b.sized(offset, int(size))
}

// sized reads the record at an offset as if it had this size.
func (b *blockReader) sized(offset, size int) (blockRecord, bool) {
	if size < emptySize {
		return blockRecord{}, false
	}
	head, body := b.data[offset:offset+recordHead], b.data[offset+recordHead:offset+size-recordSum]
	r := blockRecord{number: binary.LittleEndian.Uint64(head[4:]), size: size}
	subject, value, ok := b.parts(head, body)
	if !ok || !r.marks() && !b.own(subject) {
		return blockRecord{}, false
	}
	if b.sum.of(head[4:20], subject, value) != binary.LittleEndian.Uint64(b.data[offset+size-recordSum:]) {
		return blockRecord{}, false
	}
	r.subject = string(subject)
	return r, true
}

// parts divides what is between a record's head and its checksum.
func (b *blockReader) parts(head, body []byte) (subject, value []byte, ok bool) {
	end := int(binary.LittleEndian.Uint16(head[20:]))
	if end > len(body) {
		return nil, nil, false
	}
	from := end
	if binary.LittleEndian.Uint32(head)&headersBit != 0 {
		from += 4
	}
	if from > len(body) {
		return nil, nil, false
	}
	return body[:end], body[from:], true
}

// own reports whether a subject can be one of the stream.
func (b *blockReader) own(subject []byte) bool {
	n := len(b.stream)
	return len(subject) > n+1 && string(subject[:n]) == b.stream && subject[n] == '.' && wordLength(subject) == len(subject)
}

// wordLength is how many bytes at the start are of the characters that subjects have.
func wordLength(data []byte) int {
	for i, c := range data {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '=' || c == '.') {
			return i
		}
	}
	return len(data)
}

// subjectIn is the subject that a damaged record seems to have had, "" if it cannot be told.
func (b *blockReader) subjectIn(region []byte) string {
	if len(region) < emptySize {
		return ""
	}
	body := region[recordHead : len(region)-recordSum]
	said, words := int(binary.LittleEndian.Uint16(region[20:])), wordLength(body)
	if said <= len(body) && b.own(body[:said]) {
		return string(body[:said])
	}
	if words < len(body) && body[words] == '{' && b.own(body[:words]) { // its length is damaged
		return string(body[:words])
	}
	return ""
}

// sumOf is the checksum that the engine keeps of what it says about a stream.
func sumOf(stream string, about []byte) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, newChecksum(stream).of(about)))
}
