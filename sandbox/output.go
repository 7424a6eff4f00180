//go:build linux

package sandbox

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// outputBuffer keeps the beginning and the end of a stream in bounded memory.
type outputBuffer struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring of the last tailMax bytes after the head
	total int64

	headMax, tailMax int
	flood            int64
	onFlood          func() // called once when more than flood bytes came

	onWrite func(p []byte) // receives the data in order; may be nil

	spill     *spill // stores all of a stream that is cut; may be nil
	spillPath string // path in the sandbox of the complete output, "" if it is not kept
}

func newOutputBuffer(limit int, flood int64, onFlood func()) *outputBuffer {
	return &outputBuffer{headMax: limit * 3 / 4, tailMax: limit - limit*3/4, flood: flood, onFlood: sync.OnceFunc(onFlood)}
}

// spillTo stores the whole stream in a file in dir if it is cut, up to max bytes and the flood limit.
func (c *outputBuffer) spillTo(dir string, max int64) {
	c.spill = &spill{dir: dir, max: min(max, c.flood)}
}

// Write takes all of p and never fails.
func (c *outputBuffer) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writeSpill(p)
	c.total += int64(len(p))
	flooded := c.total > c.flood
	c.buffer(p)
	c.mu.Unlock()
	if c.onWrite != nil && len(p) > 0 && !flooded {
		c.onWrite(p)
	}
	if flooded {
		c.onFlood()
	}
	return len(p), nil
}

// writeSpill writes p to the file once the stream exceeds the limit. The first time it writes the buffered beginning before p.
func (c *outputBuffer) writeSpill(p []byte) {
	limit := int64(c.headMax + c.tailMax)
	if c.spill == nil || c.total+int64(len(p)) <= limit {
		return
	}
	if c.total <= limit {
		c.spill.write(c.head)
		c.spill.write(c.tail)
	}
	c.spill.write(p)
}

func (c *outputBuffer) buffer(p []byte) {
	n := min(c.headMax-len(c.head), len(p))
	c.head = append(c.head, p[:n]...)
	c.tail = append(c.tail, p[max(n, len(p)-c.tailMax):]...)
	if len(c.tail) > 2*c.tailMax {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.tailMax:]...)
	}
}

// readAll reads a stream to its end.
func (c *outputBuffer) readAll(r io.Reader) { _, _ = io.Copy(c, r) }

// output returns what was kept, as valid UTF-8 without NULs.
func (c *outputBuffer) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail[max(0, len(c.tail)-c.tailMax):]
	cut := c.total - int64(len(c.head)+len(tail))
	if cut <= 0 {
		return Output{Text: validText(append(append([]byte{}, c.head...), tail...))}
	}
	head, end := trimPartialRunes(c.head, tail)
	cut = c.total - int64(len(head)+len(end))
	note := fmt.Sprintf("\n[... %d bytes cut%s ...]\n", cut, c.spillHint())
	return Output{Text: validText(head) + note + validText(end), Cut: cut}
}

// spillHint tells how to read the complete output, "" if it is not kept.
func (c *outputBuffer) spillHint() string {
	switch {
	case c.spillPath == "":
		return ""
	case c.spill.size < c.total:
		return fmt.Sprintf("; the first %d bytes: %s", c.spill.size, c.spillPath)
	}
	return "; all of it: " + c.spillPath
}

// trimPartialRunes drops incomplete characters on both sides of a cut.
func trimPartialRunes(head, tail []byte) ([]byte, []byte) {
	for i := 0; i < utf8.UTFMax && len(head) > 0; i++ {
		if r, size := utf8.DecodeLastRune(head); r != utf8.RuneError || size != 1 {
			break
		}
		head = head[:len(head)-1]
	}
	for i := 0; i < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return head, tail
}

func validText(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}
