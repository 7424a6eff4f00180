// Package budget bounds the memory of large messages.
package budget

import (
	"runtime"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"sallyport/internal/reclaim"
	"sallyport/internal/tool"
)

const (
	// defaultBudget is how many bytes of large messages are in memory at once, in all sessions that share it.
	defaultBudget = 128 << 20
	// largeMessage is the length in bytes from which a message counts.
	largeMessage = 4 << 20
	// chunkSize is how many bytes of a message are reserved at a time.
	chunkSize = 1 << 20
	// roomTimeout is how long a message waits for room. Then it is read without room: the current message without
	// room may be slow, and other messages may never be freed.
	roomTimeout = 10 * time.Second
	// roomPoll is the interval of checks for memory that is no longer used.
	roomPoll = 100 * time.Millisecond
	// freeDelay is how long after a large message its memory goes back to the system.
	freeDelay = time.Second
)

// Budget bounds the memory of large messages, in bytes as sent: while there is
// no room, upstreams are not read. A message counts until nothing refers to any
// part of it, or to the large texts derived from it. One message may always be
// read, so that partly read messages do not deadlock. It is safe for concurrent use.
type Budget struct {
	limit  int64
	parent *Budget // which counts the same bytes too; nil for the budget of the process

	mu          sync.Mutex
	used        int64
	reading     int64     // the part of used by messages that are still being read
	exempt      *Buffer   // may be read without room
	exemptSince time.Time // when it was admitted
	freed       chan struct{}
	freeing     bool
}

// New returns a budget of that many bytes; 0 is 128 MiB.
func New(most int64) *Budget {
	if most <= 0 {
		most = defaultBudget
	}
	return &Budget{limit: most, freed: make(chan struct{})}
}

// Share returns a budget for one upstream, half of b, so that one upstream cannot block the others.
func (b *Budget) Share() *Budget {
	part := New(max(b.limit/2, 1))
	part.parent = b
	return part
}

// reserve reserves n more bytes for a message, or returns a channel that is closed when there may be room. With late the
// message replaces the one that is read without room; with anyway it needs no room.
func (b *Budget) reserve(p *Buffer, n int64, late, anyway bool) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.limit && b.exempt != p && !anyway {
		if b.exempt == nil && !late && b.isOver() || b.exempt != nil && !(late && time.Since(b.exemptSince) >= roomTimeout) {
			return b.freed
		}
		b.exempt, b.exemptSince = p, time.Now()
	}
	b.used += n
	b.reading += n
	return nil
}

// isOver reports whether messages that have been read must be freed before another is read without room. If only partly
// read messages use the budget, waiting is of no use.
func (b *Budget) isOver() bool { return b.used > b.limit && b.used-b.reading > b.limit/4 }

// isExempt reports whether a message may be read without room. b may be nil.
func (b *Budget) isExempt(p *Buffer) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.exempt == p
}

// wait reserves n more bytes for a message once there is room for them, or done is closed.
func (b *Budget) wait(p *Buffer, n int64, done <-chan struct{}) {
	if b.parent != nil {
		defer b.parent.wait(p, n, done)
	}
	anyway := b.parent.isExempt(p) // the others wait for this message there
	room := b.reserve(p, n, false, anyway)
	if room == nil {
		return
	}
	patience := time.NewTimer(roomTimeout)
	defer patience.Stop()
	poll := time.NewTicker(roomPoll)
	defer poll.Stop()
	for late := false; room != nil; room = b.reserve(p, n, late, anyway) {
		select {
		case <-room:
		case <-poll.C:
			runtime.GC() // runs the cleanups of unreferenced messages
		case <-patience.C:
			late = true
		case <-done:
			anyway = true
		}
	}
}

// finishRead records that a message has been read: another may be read without room.
func (b *Budget) finishRead(p *Buffer) {
	if b.parent != nil {
		b.parent.finishRead(p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading -= p.counted
	if b.exempt == p {
		b.exempt = nil
		b.notify()
	}
}

// free releases n bytes of a message.
func (b *Budget) free(n int64) {
	if b.parent != nil {
		b.parent.free(n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.notify()
	if b.parent == nil && !b.freeing {
		b.freeing = true
		time.AfterFunc(freeDelay, b.returnMemory)
	}
}

// hold counts n bytes that are in memory already, until data, their first byte, is no longer referenced.
func (b *Budget) hold(data *byte, n int) {
	for of := b; of != nil; of = of.parent {
		of.mu.Lock()
		of.used += int64(n)
		of.mu.Unlock()
	}
	runtime.AddCleanup(data, b.free, int64(n))
}

// Keep counts the large copies in a result after its message is dropped.
func (b *Budget) Keep(result tool.Result) {
	for _, c := range result.Content {
		if len(c.Text) > largeMessage {
			b.hold(unsafe.StringData(c.Text), len(c.Text))
		}
		if len(c.Data) > largeMessage {
			b.hold(&c.Data[0], len(c.Data))
		}
	}
}

// notify wakes those that wait for room. It is called with mu held.
func (b *Budget) notify() {
	close(b.freed)
	b.freed = make(chan struct{})
}

// returnMemory returns the memory of freed messages to the system.
func (b *Budget) returnMemory() {
	b.mu.Lock()
	b.freeing = false
	b.mu.Unlock()
	debug.FreeOSMemory()
}

// Buffer is a message that is being read. It is for one goroutine.
type Buffer struct {
	Budget  *Budget
	Done    <-chan struct{} // closed when the message is no longer needed
	Parts   [][]byte
	Size    int
	counted int64
}

// Add appends a copy of data to the message, once there is room for it.
func (p *Buffer) Add(data []byte) {
	p.Size += len(data)
	if p.Size > largeMessage && int64(p.Size) > p.counted {
		more := max(int64(p.Size)-p.counted, chunkSize)
		p.Budget.wait(p, more, p.Done)
		p.counted += more
	}
	last := len(p.Parts) - 1
	if last < 0 || cap(p.Parts[last])-len(p.Parts[last]) < len(data) {
		p.Parts = append(p.Parts, make([]byte, 0, max(len(data), min(p.Size, chunkSize))))
		last++
	}
	p.Parts[last] = append(p.Parts[last], data...)
}

// Take returns the message and passes its ownership to the caller.
func (p *Buffer) Take() []byte {
	var all []byte
	if len(p.Parts) == 1 {
		all = p.Parts[0]
	} else {
		all = make([]byte, 0, p.Size)
		for i, part := range p.Parts {
			all = append(all, part...)
			p.Parts[i] = nil
		}
		reclaim.Copy(len(all))
	}
	if p.counted > 0 {
		p.Budget.finishRead(p)
		budget := p.Budget
		runtime.AddCleanup(&all[0], budget.free, p.counted)
	}
	p.Parts, p.Size, p.counted = nil, 0, 0
	return all
}

// Drop discards the message and releases its bytes.
func (p *Buffer) Drop() {
	if p.counted > 0 {
		p.Budget.finishRead(p)
		p.Budget.free(p.counted)
	}
	p.Parts, p.Size, p.counted = nil, 0, 0
}

// Write implements [io.Writer].
func (p *Buffer) Write(data []byte) (int, error) {
	p.Add(data)
	return len(data), nil
}
