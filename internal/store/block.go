package store

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A block is a file of the engine with consecutive records: the total length (4 bytes, with a bit for headers), a
// number (8), a time (8), the length of the subject (2), the subject, the headers with their length (4) if there are
// any, the value, a checksum (8). The checksum covers all but the lengths. The number may have a bit for an erased
// record or a tombstone.
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
	size    int // of the whole record
}

func (r blockRecord) isMark() bool { return r.number&(erasedBit|tombstoneBit) != 0 }

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

// at reads the record at an offset; ok is false if it is not complete or its checksum does not match.
func (b *blockReader) at(offset int) (blockRecord, bool) {
	if len(b.data)-offset < emptySize {
		return blockRecord{}, false
	}
	size := binary.LittleEndian.Uint32(b.data[offset:]) &^ headersBit
	if size > maxOnDisk || int(size) > len(b.data)-offset {
		return blockRecord{}, false
	}
	return b.readSized(offset, int(size))
}

// readSized reads the record at an offset with an assumed size.
func (b *blockReader) readSized(offset, size int) (blockRecord, bool) {
	if size < emptySize {
		return blockRecord{}, false
	}
	head, body := b.data[offset:offset+recordHead], b.data[offset+recordHead:offset+size-recordSum]
	r := blockRecord{number: binary.LittleEndian.Uint64(head[4:]), size: size}
	subject, value, ok := b.parts(head, body)
	if !ok || !r.isMark() && !b.belongs(subject) {
		return blockRecord{}, false
	}
	if b.sum.of(head[4:20], subject, value) != binary.LittleEndian.Uint64(b.data[offset+size-recordSum:]) {
		return blockRecord{}, false
	}
	r.subject = string(subject)
	return r, true
}

// parts splits the bytes between a record's head and its checksum.
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

// belongs reports whether a subject can belong to the stream.
func (b *blockReader) belongs(subject []byte) bool {
	n := len(b.stream)
	return len(subject) > n+1 && string(subject[:n]) == b.stream && subject[n] == '.' && wordLength(subject) == len(subject)
}

// wordLength returns the length of the prefix of characters that subjects have.
func wordLength(data []byte) int {
	for i, c := range data {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '=' || c == '.') {
			return i
		}
	}
	return len(data)
}

// subjectIn returns the probable subject of a damaged record, "" if unknown.
func (b *blockReader) subjectIn(region []byte) string {
	if len(region) < emptySize {
		return ""
	}
	body := region[recordHead : len(region)-recordSum]
	said, words := int(binary.LittleEndian.Uint16(region[20:])), wordLength(body)
	if said <= len(body) && b.belongs(body[:said]) {
		return string(body[:said])
	}
	if words < len(body) && body[words] == '{' && b.belongs(body[:words]) { // its length is damaged
		return string(body[:words])
	}
	return ""
}

// sumOf returns the checksum of the engine's metadata of a stream.
func sumOf(stream string, about []byte) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, newChecksum(stream).of(about)))
}
