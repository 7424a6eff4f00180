package upstream

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
	// roomPoll is how often it is looked for memory that nobody uses any more.
	roomPoll = 100 * time.Millisecond
	// freeDelay is how long after a large message its memory goes back to the system.
	freeDelay = time.Second
)

// Budget bounds the memory of large messages, in bytes as they were sent: while
// there is no room, upstreams are not read. A message counts until nothing refers
// to any part of it, or to the large texts that were made of it. One message may always
// go on, so that those that are half read do not wait for each other. It is safe for concurrent use.
type Budget struct {
	most   int64
	parent *Budget // in which all counts as well; nil for that of the process

	mu      sync.Mutex
	used    int64
	reading int64     // the part of used that messages have which are still being read
	beyond  *parcel   // may go on without room
	since   time.Time // when it was let
	freed   chan struct{}
	freeing bool
}

// NewBudget returns a budget of that many bytes; 0 is 128 MiB.
func NewBudget(most int64) *Budget {
	if most <= 0 {
		most = defaultBudget
	}
	return &Budget{most: most, freed: make(chan struct{})}
}

// share returns a part of the budget for one upstream, half of it: the others go on while it uses that up.
func (b *Budget) share() *Budget {
	part := NewBudget(max(b.most/2, 1))
	part.parent = b
	return part
}

// take counts n more bytes of a message, or returns what tells that there may be room. With late the message takes the
// place of the one that is read without room.
func (b *Budget) take(p *parcel, n int64, late, anyway bool) <-chan struct{} {
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
func (b *Budget) lets(p *parcel) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beyond == p
}

// wait counts n more bytes of a message once there is room for them, or done is closed.
func (b *Budget) wait(p *parcel, n int64, done <-chan struct{}) {
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
func (b *Budget) read(p *parcel) {
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

// hold counts n bytes that are in memory already until data, their first byte, is referred to by nobody.
func (b *Budget) hold(data *byte, n int) {
	for of := b; of != nil; of = of.parent {
		of.mu.Lock()
		of.used += int64(n)
		of.mu.Unlock()
	}
	runtime.AddCleanup(data, b.free, int64(n))
}

// keep counts the large copies in a result of which the message itself is dropped.
func (b *Budget) keep(result tool.Result) {
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

// parcel is a message that is being read.
type parcel struct {
	budget  *Budget
	done    <-chan struct{} // who closes it does not want the message any more
	parts   [][]byte
	size    int
	counted int64
}

// add copies what was read of the message, when there is room for it.
func (p *parcel) add(data []byte) {
	p.size += len(data)
	if p.size > largeMessage && int64(p.size) > p.counted {
		more := max(int64(p.size)-p.counted, chunkSize)
		p.budget.wait(p, more, p.done)
		p.counted += more
	}
	last := len(p.parts) - 1
	if last < 0 || cap(p.parts[last])-len(p.parts[last]) < len(data) {
		p.parts = append(p.parts, make([]byte, 0, max(len(data), min(p.size, chunkSize))))
		last++
	}
	p.parts[last] = append(p.parts[last], data...)
}

// take returns the message, which from then on is whoever's it is.
func (p *parcel) take() []byte {
	var all []byte
	if len(p.parts) == 1 {
		all = p.parts[0]
	} else {
		all = make([]byte, 0, p.size)
		for i, part := range p.parts {
			all = append(all, part...)
			p.parts[i] = nil
		}
		reclaim.Copy(len(all))
	}
	if p.counted > 0 {
		p.budget.read(p)
		budget := p.budget
		runtime.AddCleanup(&all[0], budget.free, p.counted)
	}
	p.parts, p.size, p.counted = nil, 0, 0
	return all
}

// drop gives up a message of which nothing is wanted.
func (p *parcel) drop() {
	if p.counted > 0 {
		p.budget.read(p)
		p.budget.free(p.counted)
	}
	p.parts, p.size, p.counted = nil, 0, 0
}

// Write implements [io.Writer].
func (p *parcel) Write(data []byte) (int, error) {
	p.add(data)
	return len(data), nil
}
