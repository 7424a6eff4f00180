package shared

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// A commit is one or more records of the log. Each record begins with a head: marks (1 byte), the id of the commit (8), the number of
// commits since all files were written (4), and the size of the contents that no file has since then (8). A commit without its last
// record does not count.
const headSize = 21

// The marks of a record.
const (
	isFirst = 1 << iota
	isLast
	// isWhole: the commit has all files, and changes nothing.
	isWhole
	// isEmpty: no file is left.
	isEmpty
)

// head is the beginning of a record.
type head struct {
	marks   byte
	id      string
	depth   uint32
	dropped int64
}

func (h head) has(mark byte) bool { return h.marks&mark != 0 }

func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}

// format returns a record.
func (h head) format(part []byte) []byte {
	id, _ := hex.DecodeString(h.id) // of newID, or of parse
	record := append(make([]byte, 0, headSize+len(part)), h.marks)
	record = append(record, id...)
	record = binary.BigEndian.AppendUint32(record, h.depth)
	record = binary.BigEndian.AppendUint64(record, uint64(max(0, h.dropped)))
	return append(record, part...)
}

// parse is the inverse of format.
func parse(record []byte) (h head, part []byte, err error) {
	if len(record) < headSize {
		return h, nil, fmt.Errorf("%w: %d bytes", workspace.ErrDamaged, len(record))
	}
	h = head{marks: record[0], id: hex.EncodeToString(record[1:9]), depth: binary.BigEndian.Uint32(record[9:])}
	dropped := binary.BigEndian.Uint64(record[13:])
	if h.dropped = int64(dropped); h.dropped < 0 {
		return h, nil, fmt.Errorf("%w: a size of %d", workspace.ErrDamaged, dropped)
	}
	return h, record[headSize:], nil
}

// version is that of the content of a commit.
const version = 1

// content is the content of a commit, as JSON.
type content struct {
	Version int `json:"version"`
	// After is the id of the commit before, "" for the first one.
	After   string            `json:"after,omitempty"`
	Entries []workspace.Entry `json:"entries"`
	// Unused are contents that no file has, with the time in milliseconds since 1970 at which the servers stored the first commit that says
	// so; 0 for this one.
	Unused map[string]int64 `json:"unused,omitempty"`
}

// commit is a commit as it was read.
type commit struct {
	head
	content

	first, last store.Entry
}

// reader joins the records of commits.
type reader struct {
	current *commit
	data    []byte
}

// add adds the next record, and returns the commit that ends with it, if any.
func (r *reader) add(e store.Entry) (*commit, error) {
	h, part, err := parse(e.Value)
	if err != nil {
		return nil, err
	}
	if h.has(isFirst) {
		r.current, r.data = &commit{head: h, first: e}, nil
	}
	if r.current == nil || r.current.id != h.id { // the rest of a commit that was removed or never finished
		r.current = nil
		return nil, nil
	}
	r.data = append(r.data, part...)
	if !h.has(isLast) {
		return nil, nil
	}
	done := r.current
	done.head, done.last = h, e
	done.marks |= isFirst
	r.current = nil
	return done, done.decode(r.data)
}

// decode decodes the content, which is not trusted.
func (c *commit) decode(data []byte) error {
	if err := json.Unmarshal(data, &c.content); err != nil {
		return fmt.Errorf("%w: %w", workspace.ErrDamaged, err)
	}
	if c.Version > version {
		return fmt.Errorf("%w: %d, of at most %d", workspace.ErrNewer, c.Version, version)
	}
	for i := range c.Entries {
		if c.Entries[i].By == "" {
			c.Entries[i].By = c.id
		}
		if err := c.Entries[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// point returns the commit as a point, for a log that ends with it.
func (c *commit) point() workspace.Point {
	return workspace.Point{Revision: c.last.Revision, Tail: c.last.Revision, ID: c.id, Depth: c.depth, Dropped: c.dropped}
}

// errGap means that commits were removed while they were read.
var errGap = errors.New("commits are missing")
