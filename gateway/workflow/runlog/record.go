package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/internal/store"
)

// A record of the log holds events, each a line of JSON, or a piece of a line that is too large for a record: the
// first byte says which. The pieces of a line are consecutive; a line without its last piece was not written.
const (
	lines = '{'
	first = '<'
	more  = '+'
	last  = '>'
)

const (
	// maxRecord is the maximum size of a record in bytes, unless a single event is larger.
	maxRecord = 1 << 20
	// pieceSize is the size of the pieces of a line.
	pieceSize = 2 << 20 // must be below Limits.Record
	// MaxEvent is the maximum size of an event as JSON, in bytes.
	MaxEvent = 32 << 20
)

// ErrNewer is the error for a log that a newer version of the program wrote.
var ErrNewer = errors.New("the run was recorded by a newer version")

// encode returns an event as a line of JSON.
func encode(e Event) ([]byte, error) {
	if !e.Kind.known() {
		return nil, fmt.Errorf("%w: unknown event kind %.40q", store.ErrInvalid, e.Kind)
	}
	var line []byte
	err, size := error(nil), len(e.Input)+len(e.Output)
	if size <= MaxEvent {
		e.N = 0
		line, err = json.Marshal(e)
		size = len(line)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: event %s of %q: %w", store.ErrInvalid, e.Kind, e.Path, err)
	case size > MaxEvent:
		return nil, fmt.Errorf("%w: event %s of %q has %d bytes, the limit is %d", store.ErrInvalid, e.Kind, e.Path, size, MaxEvent)
	}
	return append(line, '\n'), nil
}

// records packs groups of lines into as few records as possible. A group that is too large is a single line, and is split.
func records(groups [][]byte) (all [][]byte) {
	var room [][]byte
	size := 0
	end := func() {
		if size > 0 {
			all = append(all, concat(room))
		}
		room, size = nil, 0
	}
	for _, group := range groups {
		if size+len(group) > maxRecord {
			end()
		}
		if len(group) > pieceSize {
			all = append(all, pieces(group)...)
			continue
		}
		room, size = append(room, group), size+len(group)
	}
	end()
	return all
}

// pieces splits a line into records.
func pieces(line []byte) (records [][]byte) {
	kind := byte(first)
	for len(line) > pieceSize {
		records = append(records, append([]byte{kind}, line[:pieceSize]...))
		line, kind = line[pieceSize:], more
	}
	return append(records, append([]byte{last}, line...))
}

// decoder decodes the events of a log, record by record. The zero decoder is at the start of a log.
type decoder struct {
	seen    int    // events so far
	skip    int    // how many of them to count without decoding
	pending []byte // the pieces of an incomplete line; nil is none
}

// add calls do with each event that a record completes.
func (d *decoder) add(record []byte, do func(Event) error) error {
	kind := byte(0)
	if len(record) > 0 {
		kind = record[0]
	}
	switch {
	case kind == lines:
		d.pending = nil
		return d.lines(record, do)
	case kind == first:
		d.pending = []byte{}
		d.gather(record[1:])
	case (kind == more || kind == last) && d.pending != nil:
		if len(d.pending)+len(record) > MaxEvent+2 {
			return fmt.Errorf("%w: an event of over %d bytes", store.ErrCorrupt, MaxEvent)
		}
		d.gather(record[1:])
	default:
		return fmt.Errorf("%w: event %d: a record that begins with %.8q", store.ErrCorrupt, d.seen+1, record)
	}
	if kind != last {
		return nil
	}
	line := d.pending
	d.pending = nil
	if d.seen < d.skip {
		d.seen++
		return nil
	}
	return d.lines(line, do)
}

// gather appends a piece of a line, unless the line is skipped.
func (d *decoder) gather(piece []byte) {
	if d.seen >= d.skip {
		d.pending = append(d.pending, piece...)
	}
}

func (d *decoder) lines(record []byte, do func(Event) error) error {
	for line := range bytes.Lines(record) {
		if d.seen < d.skip {
			d.seen++
			continue
		}
		e, err := decode(line)
		if err != nil {
			return fmt.Errorf("event %d: %w", d.seen+1, err)
		}
		d.seen++
		e.N = d.seen
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}

// decode decodes a line. It ignores unknown members, which older versions can do without, but rejects
// unknown event kinds.
func decode(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	if !e.Kind.known() {
		return e, fmt.Errorf("%w: it has %.40q", ErrNewer, e.Kind)
	}
	return e, nil
}
