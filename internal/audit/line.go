package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Record is a written event with its hashes.
type Record struct {
	Event
	// Prev is the hash of the record before, Hash that of this one, in hex.
	Prev string `json:"prev"`
	Hash string `json:"hash"`
	// Line is the line of the file, without its newline.
	Line []byte `json:"-"`
}

// A line is the event as one JSON object with two more members at its end, in this order and spelling:
//
//	{"seq":7,...,"prev":"<64 hex digits>","hash":"<64 hex digits>"}
//
// The hash is the SHA-256 of the line as it would be without its last member: `{"seq":7,...,"prev":"..."}`.
const (
	prevMember = `,"prev":"`
	hashMember = `,"hash":"`
	hexSize    = 2 * sha256.Size
	// tailSize is the length of the members after the event.
	tailSize = len(prevMember) + hexSize + 1 + len(hashMember) + hexSize + 2
	// maxLine bounds a line, in bytes. Records are shorter.
	maxLine = 1 << 20
)

var (
	errNotRecord = errors.New("it is not a record")
	errEdited    = errors.New("its hash is wrong")
)

// noHash is the hash before the first record.
var noHash = strings.Repeat("0", hexSize)

// encode returns the line of an event that follows the record with the hash prev, and its own hash.
func encode(e Event, prev string) (line []byte, hash string, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, "", fmt.Errorf("encode record: %w", err)
	}
	b.Truncate(b.Len() - len("}\n"))
	b.WriteString(prevMember + prev + `"}`)
	digest := sha256.Sum256(b.Bytes())
	hash = hex.EncodeToString(digest[:])
	b.Truncate(b.Len() - 1)
	b.WriteString(hashMember + hash + "\"}\n")
	return b.Bytes(), hash, nil
}

// decode decodes a line without its newline. The error is errEdited, with the record, if the hash is wrong, and errNotRecord if
// the line has another form.
func decode(line []byte) (Record, error) {
	if len(line) > maxLine || len(line) <= tailSize || line[0] != '{' || bytes.IndexByte(line, '\n') >= 0 {
		return Record{}, errNotRecord
	}
	cut := len(line) - len(hashMember) - hexSize - 2
	prevAt := cut - hexSize - 1
	if string(line[cut:cut+len(hashMember)]) != hashMember || string(line[prevAt-len(prevMember):prevAt]) != prevMember || string(line[len(line)-2:]) != `"}` {
		return Record{}, errNotRecord
	}
	r := Record{Prev: string(line[prevAt : cut-1]), Hash: string(line[cut+len(hashMember) : len(line)-2]), Line: line}
	if err := json.Unmarshal(line, &r.Event); err != nil || r.Seq == 0 || !isHash(r.Prev) || !isHash(r.Hash) {
		return r, errNotRecord
	}
	h := sha256.New()
	h.Write(line[:cut])
	h.Write([]byte("}"))
	if hex.EncodeToString(h.Sum(nil)) != r.Hash {
		return r, errEdited
	}
	return r, nil
}

func isHash(text string) bool {
	if len(text) != hexSize {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
