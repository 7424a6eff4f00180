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
	// chunkSize is how much of a message is read before it is asked again whether there is room.
	chunkSize = 1 << 20
	// roomPatience is how long a message waits for room: then it is read without room, in place of the one that was,
	// which may be slow, or although nothing was freed, which others may hold for ever.
	roomPatience = 10 * time.Second
	// roomPoll is the interval of checks for memory that is no longer used.
	roomPoll = 100 * time.Millisecond
	// freeDelay is how long after a large message its memory goes back to the system.
	freeDelay = time.Second
)

// Budget bounds the memory of large messages, in bytes as they were sent: while
// there is no room, upstreams are not read. A message counts until nothing refers
// to any part of it, or to the large texts derived from it. One message may always
// go on, so that those that are half read do not wait for each other. It is safe for concurrent use.
type Budget struct {
	most   int64
	parent *Budget // in which all counts as well; nil for that of the process

	mu      sync.Mutex
	used    int64
	reading int64     // the part of used that messages have which are still being read
	beyond  *Parcel   // may go on without room
	since   time.Time // when it was let
	freed   chan struct{}
	freeing bool
}

// New returns a budget of that many bytes; 0 is 128 MiB.
func New(most int64) *Budget {
	if most <= 0 {
		most = defaultBudget
	}
	return &Budget{most: most, freed: make(chan struct{})}
}

// Share returns a part of the budget for one upstream, half of it: the others go on while it uses that up.
func (b *Budget) Share() *Budget {
	part := New(max(b.most/2, 1))
	part.parent = b
	return part
}

// take counts n more bytes of a message, or returns what tells that there may be room. With late the message takes the
// place of the one that is read without room.
func (b *Budget) take(p *Parcel, n int64, late, anyway bool) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.most && b.beyond != p && !anyway {
		if b.beyond == nil && !late && b.isOver() || b.beyond != nil && !(late && time.Since(b.since) >= roomPatience) {
			return b.freed
		}
		b.beyond, b.since = p, time.Now()
	}
	b.used += n
	b.reading += n
	return nil
}

// isOver reports whether messages that have been read have to go before another is read without room. If all is used by
// messages that are half read, there is nothing to wait for.
func (b *Budget) isOver() bool { return b.used > b.most && b.used-b.reading > b.most/4 }

// lets reports whether a message may go on without room. It is nil for that of the process.
func (b *Budget) lets(p *Parcel) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beyond == p
}

// wait counts n more bytes of a message once there is room for them, or done is closed.
func (b *Budget) wait(p *Parcel, n int64, done <-chan struct{}) {
	if b.parent != nil {
		defer b.parent.wait(p, n, done)
	}
	anyway := b.parent.lets(p) // the others wait for it there
	room := b.take(p, n, false, anyway)
	if room == nil {
		return
	}
	patience := time.NewTimer(roomPatience)
	defer patience.Stop()
	poll := time.NewTicker(roomPoll)
	defer poll.Stop()
	for late := false; room != nil; room = b.take(p, n, late, anyway) {
		select {
		case <-room:
		case <-poll.C:
			runtime.GC() // finds the messages that nobody refers to any more
		case <-patience.C:
			late = true
		case <-done:
			anyway = true
		}
	}
}

// read says that a message has been read: another may go on without room.
func (b *Budget) read(p *Parcel) {
	if b.parent != nil {
		b.parent.read(p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading -= p.counted
	if b.beyond == p {
		b.beyond = nil
		b.tell()
	}
}

// free gives back what a message has counted for.
func (b *Budget) free(n int64) {
	if b.parent != nil {
		b.parent.free(n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.tell()
	if b.parent == nil && !b.freeing {
		b.freeing = true
		time.AfterFunc(freeDelay, b.giveBack)
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

// Keep counts the large copies in a result of which the message itself is dropped.
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

// tell is called with mu held.
func (b *Budget) tell() {
	close(b.freed)
	b.freed = make(chan struct{})
}

// giveBack returns to the system the memory that large messages have left.
func (b *Budget) giveBack() {
	b.mu.Lock()
	b.freeing = false
	b.mu.Unlock()
	debug.FreeOSMemory()
}

// Parcel is a message that is being read.
type Parcel struct {
	Budget  *Budget
	Done    <-chan struct{} // who closes it does not want the message any more
	Parts   [][]byte
	Size    int
	counted int64
}

// Add copies what was read of the message, when there is room for it.
func (p *Parcel) Add(data []byte) {
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
func (p *Parcel) Take() []byte {
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
		p.Budget.read(p)
		budget := p.Budget
		runtime.AddCleanup(&all[0], budget.free, p.counted)
	}
	p.Parts, p.Size, p.counted = nil, 0, 0
	return all
}

// Drop gives up a message of which nothing is wanted.
func (p *Parcel) Drop() {
	if p.counted > 0 {
		p.Budget.read(p)
		p.Budget.free(p.counted)
	}
	p.Parts, p.Size, p.counted = nil, 0, 0
}

// Write implements [io.Writer].
func (p *Parcel) Write(data []byte) (int, error) {
	p.Add(data)
	return len(data), nil
}
