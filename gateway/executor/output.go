package executor

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"sallyport/gateway/execution"
	"sallyport/internal/redact"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

const (
	// keptOutput is how much of what a program that runs has printed can be looked at, in bytes: the last of it.
	keptOutput = 64 << 10
	// maxPiece is how long pieces of it become by what is printed next, in bytes.
	maxPiece = 4 << 10
)

// output is what a program prints while it runs. It is safe for concurrent use.
type output struct {
	mu     sync.Mutex
	tell   func(execution.Printed) // the program's; nil is nobody
	said   func()                  // called after each piece
	out    cleaner
	err    cleaner
	pieces []execution.Printed
	size   int   // of pieces
	bytes  int64 // of all that there was
}

func newOutput(m *redact.Mask, tell func(execution.Printed), said func()) *output {
	return &output{tell: tell, said: said, out: cleaner{secrets: m.Stream()}, err: cleaner{secrets: m.Stream()}}
}

// printed is a [sandbox.Job]'s.
func (o *output) printed(s sandbox.Stream, p []byte) {
	o.mu.Lock()
	if s == sandbox.Stderr {
		o.put(s, o.err.next(p))
	} else {
		o.put(s, o.out.next(p))
	}
	o.mu.Unlock()
	o.said()
}

// end says what was kept back: the program has ended.
func (o *output) end() {
	o.mu.Lock()
	o.put(sandbox.Stdout, o.out.end())
	o.put(sandbox.Stderr, o.err.end())
	o.mu.Unlock()
}

// put is called with mu held, so that output is passed on in order.
func (o *output) put(s sandbox.Stream, text string) {
	if text == "" {
		return
	}
	p := execution.Printed{Stream: string(s), Text: text}
	if o.tell != nil {
		o.tell(p)
	}
	o.bytes += int64(len(text))
	if n := len(o.pieces); n > 0 && o.pieces[n-1].Stream == p.Stream && len(o.pieces[n-1].Text)+len(text) <= maxPiece {
		o.pieces[n-1].Text += text
	} else {
		o.pieces = append(o.pieces, p)
	}
	o.size += len(text)
	for o.size-len(o.pieces[0].Text) >= keptOutput {
		o.size -= len(o.pieces[0].Text)
		o.pieces = o.pieces[1:]
	}
}

// last returns the last of what was printed, at most keptOutput bytes and of whole characters, and how much it was in all.
func (o *output) last() ([]execution.Printed, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pieces := append([]execution.Printed(nil), o.pieces...)
	if over := o.size - keptOutput; over > 0 {
		text := pieces[0].Text
		for over < len(text) && !utf8.RuneStart(text[over]) {
			over++
		}
		pieces[0].Text = text[over:]
	}
	return pieces, o.bytes
}

// cleaner makes text that comes in pieces what visible makes of a whole one, and hides secrets in that.
type cleaner struct {
	secrets *redact.Stream
	held    []byte // what more is needed of to know what it is
	line    bool   // the last was a carriage return, which a newline belongs to
	bad     bool   // the last was no character, as what follows may be: together they are one that cannot be shown
}

// halfSequence is the beginning of a control sequence of a terminal, at the end.
var halfSequence = regexp.MustCompile(`(?:\x1b|(?:\x1b\[|\x{9b})[0-?]*[ -/]*)$`)

// maxSequence is how long a control sequence may be, in bytes, that comes in pieces.
const maxSequence = 64

func (c *cleaner) next(p []byte) string {
	all := p
	if len(c.held) > 0 {
		all = append(c.held, p...)
	}
	cut := wholeText(all)
	c.held = bytes.Clone(all[cut:])
	return string(c.secrets.Next(c.clean(all[:cut])))
}

func (c *cleaner) end() string {
	held := c.held
	c.held = nil
	return string(append(bytes.Clone(c.secrets.Next(c.clean(held))), c.secrets.End()...))
}

// wholeText returns how much of text ends neither within a character nor within a control sequence.
func wholeText(text []byte) int {
	cut := len(text)
	for n := 1; n < utf8.UTFMax && n <= cut; n++ {
		if b := text[cut-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[cut-n:]) {
				cut -= n
			}
			break
		}
	}
	tail := text[max(0, cut-maxSequence):cut]
	if i := bytes.LastIndexAny(tail, "\x1b\u009b"); i >= 0 && halfSequence.Match(tail[i:]) {
		cut -= len(tail) - i
	}
	return cut
}

// clean is what shows of whole characters, with one newline for each end of a line.
func (c *cleaner) clean(p []byte) []byte {
	for c.bad && len(p) > 0 && invalid(utf8.DecodeRune(p)) {
		p = p[1:]
	}
	if len(p) > 0 {
		c.bad = invalid(utf8.DecodeLastRune(p))
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(p), "\uFFFD"), "\x00", "\uFFFD")
	return []byte(strings.Map(func(r rune) rune {
		after := c.line
		c.line = r == '\r'
		if r == '\n' && after {
			return -1
		}
		return execution.VisibleRune(r)
	}, sanitize.Uncoloured(text)))
}

// invalid reports whether what was decoded is no character.
func invalid(r rune, size int) bool { return r == utf8.RuneError && size == 1 }
