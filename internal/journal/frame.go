package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"sallyport/internal/tool"
)

// A file is the magic followed by frames. A frame is the length (4 bytes) and CRC-32C (4 bytes) of the rest, little
// endian; a kind byte; one line of JSON; and the bodies whose sizes the JSON gives.
const magic = "sallyJ1\n"

const frameHead = 8

// Kinds of frames.
const (
	isHeader     = 'H'
	isBegin      = 'B' // a call was sent
	isEnd        = 'E' // its outcome
	isRefused    = 'R' // a call was not sent
	isCarried    = 'C' // a call carried over from the previous journal
	isRequest    = 'A' // the program requested a carried call
	isDecided    = 'D' // a person has decided about a carried call
	isTask       = 'T' // a call became a task of its upstream
	isProgramEnd = 'O' // the program has ended
	isResumed    = 'S' // another execution resumes it
	isSettled    = 'K' // its record is stored elsewhere
	isSuccess    = 'W' // the same, after a success: no resume is needed
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// callRecord is the JSON of a frame about a call.
type callRecord struct {
	Number     int           `json:"n"`
	Tool       string        `json:"tool,omitempty"`
	Definition string        `json:"def,omitempty"`
	Arguments  string        `json:"args,omitempty"`
	Input      int           `json:"in,omitempty"` // the bytes of the arguments, which follow first; 0 is none
	State      State         `json:"state,omitempty"`
	Last       bool          `json:"last,omitempty"`
	Optional   bool          `json:"optional,omitempty"`
	Lost       bool          `json:"lost,omitempty"`
	Decision   Decision      `json:"decision,omitempty"`
	Origin     string        `json:"origin,omitempty"`
	Task       string        `json:"task,omitempty"`
	Replaces   []int         `json:"replaces,omitempty"` // the carried calls in whose place it is made
	Error      *errorRecord  `json:"error,omitempty"`
	Result     *resultRecord `json:"result,omitempty"`
}

type errorRecord struct {
	Kind      tool.Kind `json:"kind"`
	Message   string    `json:"message,omitempty"`
	Hint      string    `json:"hint,omitempty"`
	Retryable bool      `json:"retryable,omitempty"`
}

// resultRecord is a result whose long parts follow as bytes. A size of -1 means nil, 0 means empty.
type resultRecord struct {
	Content    []block `json:"content,omitempty"`
	IsError    bool    `json:"isError,omitempty"`
	Structured int     `json:"structured"`
	Raw        int     `json:"raw"`
}

type block struct {
	Type string `json:"type,omitempty"`
	MIME string `json:"mime,omitempty"`
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
	Text int    `json:"text"`
	Data int    `json:"data"`
	Raw  int    `json:"raw"`
}

func size(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// split splits a result into the part that is encoded as JSON and the bodies that follow.
func split(r tool.Result) (a *resultRecord, bodies [][]byte) {
	a = &resultRecord{IsError: r.IsError, Structured: size(r.Structured), Raw: size(r.Raw)}
	for _, c := range r.Content {
		a.Content = append(a.Content, block{Type: c.Type, MIME: c.MIME, URI: c.URI, Name: c.Name, Text: len(c.Text), Data: size(c.Data), Raw: size(c.Raw)})
		bodies = append(bodies, []byte(c.Text), c.Data, c.Raw)
	}
	return a, append(bodies, r.Structured, r.Raw)
}

// join is the inverse of split. ok is false if the sizes do not match the bytes.
func (a *resultRecord) join(rest []byte) (r tool.Result, ok bool) {
	ok = true
	take := func(n int) []byte {
		if n < 0 {
			return nil
		}
		if n > len(rest) {
			ok = false
			return nil
		}
		body := rest[:n:n]
		rest = rest[n:]
		return body
	}
	r.IsError = a.IsError
	for _, b := range a.Content {
		r.Content = append(r.Content, tool.Content{Type: b.Type, MIME: b.MIME, URI: b.URI, Name: b.Name, Text: string(take(b.Text)), Data: take(b.Data), Raw: take(b.Raw)})
	}
	r.Structured, r.Raw = take(a.Structured), take(a.Raw)
	return r, ok && len(rest) == 0
}

// appendFrame appends one frame.
func appendFrame(b []byte, kind byte, head []byte, bodies ...[]byte) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHead)...)
	b = append(append(append(b, kind), head...), '\n')
	for _, body := range bodies {
		b = append(b, body...)
	}
	content := b[start+frameHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(content))) //nolint:gosec // results are bounded
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(content, castagnoli()))
	return b
}

// frame is a decoded frame.
type frame struct {
	kind       byte
	head, rest []byte
}

// nextFrame decodes the first frame of data and returns its length; 0 if it is not complete.
func nextFrame(data []byte) (f frame, n int) {
	if len(data) < frameHead+2 {
		return frame{}, 0
	}
	length := int64(binary.LittleEndian.Uint32(data))
	if length < 2 || length > int64(len(data)-frameHead) {
		return frame{}, 0
	}
	content := data[frameHead : frameHead+length]
	if crc32.Checksum(content, castagnoli()) != binary.LittleEndian.Uint32(data[4:]) {
		return frame{}, 0
	}
	head, rest, ok := bytes.Cut(content[1:], []byte{'\n'})
	if !ok {
		return frame{}, 0
	}
	return frame{content[0], head, rest}, frameHead + int(length)
}

// callOf decodes a call.
func callOf(l callRecord, rest []byte) (Call, error) {
	c := Call{Number: l.Number, Definition: l.Definition, Arguments: l.Arguments, State: l.State, Lost: l.Lost, Last: l.Last, Optional: l.Optional, Decision: l.Decision, Origin: l.Origin, Task: l.Task}
	if l.Input < 0 || l.Input > len(rest) {
		return Call{}, fmt.Errorf("%w: arguments have the wrong size", ErrDamaged)
	}
	if l.Input > 0 {
		c.Args, rest = rest[:l.Input:l.Input], rest[l.Input:]
	}
	var err error
	if c.Tool, err = tool.ParseID(l.Tool); err != nil {
		return Call{}, err
	}
	return c, c.setOutcome(l, rest)
}

// setOutcome sets a call's outcome.
func (c *Call) setOutcome(l callRecord, rest []byte) error {
	c.Lost, c.Decision = l.Lost, l.Decision
	if e := l.Error; e != nil {
		c.Err = &tool.Error{Kind: e.Kind, Message: e.Message, Hint: e.Hint, Retryable: e.Retryable}
	}
	if l.Result != nil {
		result, ok := l.Result.join(rest)
		if !ok {
			return fmt.Errorf("%w: a result has the wrong size", ErrDamaged)
		}
		c.Result = result
	}
	return nil
}

// recordOf encodes a call, and returns the bodies that follow it.
func recordOf(c Call) (l callRecord, bodies [][]byte) {
	l = callRecord{Number: c.Number, Tool: c.Tool.String(), Definition: c.Definition, Arguments: c.Arguments, State: c.State, Last: c.Last, Lost: c.Lost, Optional: c.Optional, Decision: c.Decision, Origin: c.Origin, Task: c.Task}
	if c.State == Ended || c.State == Refused {
		l.Error, l.Result, bodies = outcomeOf(c)
	}
	return l, bodies
}

func outcomeOf(c Call) (*errorRecord, *resultRecord, [][]byte) {
	if e := c.Err; e != nil {
		return &errorRecord{e.Kind, e.Message, e.Hint, e.Retryable}, nil, nil
	}
	if c.Lost || c.State != Ended {
		return nil, nil, nil
	}
	a, bodies := split(c.Result)
	return nil, a, bodies
}

func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}
