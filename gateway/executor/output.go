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
	// maxLiveOutput is how much of the end of a running program's output is kept, in bytes.
	maxLiveOutput = 64 << 10
	// maxPiece is how long a piece may become by appending output, in bytes.
	maxPiece = 4 << 10
)

// output is what a program prints while it runs. It is safe for concurrent use.
type output struct {
	mu       sync.Mutex
	onOutput func(execution.Printed) // the program's callback; nil for none
	onChange func()                  // called after each piece
	out      cleaner
	err      cleaner
	pieces   []execution.Printed
	size     int   // of pieces
	bytes    int64 // of all output
}

func newOutput(m *redact.Mask, tell func(execution.Printed), said func()) *output {
	return &output{onOutput: tell, onChange: said, out: cleaner{secrets: m.Stream()}, err: cleaner{secrets: m.Stream()}}
}

// write is the Printed callback of a [sandbox.Job].
func (o *output) write(s sandbox.Stream, p []byte) {
	o.mu.Lock()
	if s == sandbox.Stderr {
		o.appendLocked(s, o.err.next(p))
	} else {
		o.appendLocked(s, o.out.next(p))
	}
	o.mu.Unlock()
	o.onChange()
}

// end flushes held output, after the program has ended.
func (o *output) end() {
	o.mu.Lock()
	o.appendLocked(sandbox.Stdout, o.out.end())
	o.appendLocked(sandbox.Stderr, o.err.end())
	o.mu.Unlock()
}

// appendLocked appends text and passes it on. It is called with mu held, to keep the order.
func (o *output) appendLocked(s sandbox.Stream, text string) {
	if text == "" {
		return
	}
	p := execution.Printed{Stream: string(s), Text: text}
	if o.onOutput != nil {
		o.onOutput(p)
	}
	o.bytes += int64(len(text))
	if n := len(o.pieces); n > 0 && o.pieces[n-1].Stream == p.Stream && len(o.pieces[n-1].Text)+len(text) <= maxPiece {
		o.pieces[n-1].Text += text
	} else {
		o.pieces = append(o.pieces, p)
	}
	o.size += len(text)
	for o.size-len(o.pieces[0].Text) >= maxLiveOutput {
		o.size -= len(o.pieces[0].Text)
		o.pieces = o.pieces[1:]
	}
}

// tail returns the end of the output, at most maxLiveOutput bytes of whole characters, and the size of all output.
func (o *output) tail() ([]execution.Printed, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pieces := append([]execution.Printed(nil), o.pieces...)
	if over := o.size - maxLiveOutput; over > 0 {
		text := pieces[0].Text
		for over < len(text) && !utf8.RuneStart(text[over]) {
			over++
		}
		pieces[0].Text = text[over:]
	}
	return pieces, o.bytes
}

// cleaner does for text in pieces what execution.Visible does for a whole one, and hides secrets.
type cleaner struct {
	secrets      *redact.Stream
	held         []byte // an incomplete character or control sequence
	afterCR      bool   // the last character was a carriage return; drop a newline after it
	afterInvalid bool   // the last byte was invalid; drop further invalid ones
}

// halfSequence matches an incomplete terminal control sequence at the end.
var halfSequence = regexp.MustCompile(`(?:\x1b|(?:\x1b\[|\x{9b})[0-?]*[ -/]*)$`)

// maxSequence is the maximum length of a control sequence in pieces, in bytes.
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

// clean returns the visible part of whole characters, with one newline for each end of a line.
func (c *cleaner) clean(p []byte) []byte {
	for c.afterInvalid && len(p) > 0 && invalid(utf8.DecodeRune(p)) {
		p = p[1:]
	}
	if len(p) > 0 {
		c.afterInvalid = invalid(utf8.DecodeLastRune(p))
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(p), "\uFFFD"), "\x00", "\uFFFD")
	return []byte(strings.Map(func(r rune) rune {
		after := c.afterCR
		c.afterCR = r == '\r'
		if r == '\n' && after {
			return -1
		}
		return execution.VisibleRune(r)
	}, sanitize.StripEscapes(text)))
}

// invalid reports whether a decoded rune is invalid UTF-8.
func invalid(r rune, size int) bool { return r == utf8.RuneError && size == 1 }
