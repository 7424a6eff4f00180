package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"sallyport/internal/tool"
)

// A file is the magic and frames: 4 bytes of length and 4 of CRC-32C, both of what follows and little endian; a byte that
// says what it is; one line of JSON; and the bytes that the JSON tells the sizes of.
const magic = "sallyJ1\n"

const frameHead = 8

// What a frame is.
const (
	isHeader  = 'H'
	isBegin   = 'B' // a call is on its way
	isEnd     = 'E' // and what it came to
	isRefused = 'R' // a call did not leave
	isCarried = 'C' // a call of the journal before
	isAsked   = 'A' // a carried call was asked for
	isDecided = 'D' // a person has decided about a carried call
	isOver    = 'O' // the program has ended
	isResumed = 'S' // another execution goes on with it
	isKept    = 'K' // its record is kept elsewhere
	isWell    = 'W' // the same, and it ended well: nobody needs to go on with it
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// line is the JSON of a frame about a call.
type line struct {
	Number     int      `json:"n"`
	Tool       string   `json:"tool,omitempty"`
	Definition string   `json:"def,omitempty"`
	Arguments  string   `json:"args,omitempty"`
	Input      int      `json:"in,omitempty"` // the bytes of the arguments, which follow first; 0 is none
	State      State    `json:"state,omitempty"`
	Last       bool     `json:"last,omitempty"`
	Optional   bool     `json:"optional,omitempty"`
	Lost       bool     `json:"lost,omitempty"`
	Decision   Decision `json:"decision,omitempty"`
	Origin     string   `json:"origin,omitempty"`
	Replaces   []int    `json:"replaces,omitempty"` // the carried calls in whose place it is made
	Error      *failure `json:"error,omitempty"`
	Result     *answer  `json:"result,omitempty"`
}

type failure struct {
	Kind      tool.Kind `json:"kind"`
	Message   string    `json:"message,omitempty"`
	Hint      string    `json:"hint,omitempty"`
	Retryable bool      `json:"retryable,omitempty"`
}

// answer is a result with its long parts as bytes behind it. A size is -1 where there is nothing, which is not the same as nothing in it.
type answer struct {
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

// split takes a result apart, into what becomes JSON and what follows it.
func split(r tool.Result) (a *answer, bodies [][]byte) {
	a = &answer{IsError: r.IsError, Structured: size(r.Structured), Raw: size(r.Raw)}
	for _, c := range r.Content {
		a.Content = append(a.Content, block{Type: c.Type, MIME: c.MIME, URI: c.URI, Name: c.Name, Text: len(c.Text), Data: size(c.Data), Raw: size(c.Raw)})
		bodies = append(bodies, []byte(c.Text), c.Data, c.Raw)
	}
	return a, append(bodies, r.Structured, r.Raw)
}

// join is the other way. ok is false where the sizes are not those of the bytes.
func (a *answer) join(rest []byte) (r tool.Result, ok bool) {
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

// frame is one that was read.
type frame struct {
	kind       byte
	head, rest []byte
}

// nextFrame reads the first frame of data, and says how long it is; 0 where there is none that is whole.
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

// callOf makes a call of what is said of it.
func callOf(l line, rest []byte) (Call, error) {
	c := Call{Number: l.Number, Definition: l.Definition, Arguments: l.Arguments, State: l.State, Lost: l.Lost, Last: l.Last, Optional: l.Optional, Decision: l.Decision, Origin: l.Origin}
	if l.Input < 0 || l.Input > len(rest) {
		return Call{}, fmt.Errorf("%w: arguments have not their size", ErrDamaged)
	}
	if l.Input > 0 {
		c.Args, rest = rest[:l.Input:l.Input], rest[l.Input:]
	}
	var err error
	if c.Tool, err = tool.ParseID(l.Tool); err != nil {
		return Call{}, err
	}
	return c, c.settle(l, rest)
}

// settle adds what a call came to.
func (c *Call) settle(l line, rest []byte) error {
	c.Lost, c.Decision = l.Lost, l.Decision
	if e := l.Error; e != nil {
		c.Err = &tool.Error{Kind: e.Kind, Message: e.Message, Hint: e.Hint, Retryable: e.Retryable}
	}
	if l.Result != nil {
		result, ok := l.Result.join(rest)
		if !ok {
			return fmt.Errorf("%w: a result has not its size", ErrDamaged)
		}
		c.Result = result
	}
	return nil
}

// lineOf says what is kept of a call, and the bytes that follow it.
func lineOf(c Call) (l line, bodies [][]byte) {
	l = line{Number: c.Number, Tool: c.Tool.String(), Definition: c.Definition, Arguments: c.Arguments, State: c.State, Last: c.Last, Lost: c.Lost, Optional: c.Optional, Decision: c.Decision, Origin: c.Origin}
	if c.State == Ended || c.State == Refused {
		l.Error, l.Result, bodies = outcomeOf(c)
	}
	return l, bodies
}

func outcomeOf(c Call) (*failure, *answer, [][]byte) {
	if e := c.Err; e != nil {
		return &failure{e.Kind, e.Message, e.Hint, e.Retryable}, nil, nil
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
