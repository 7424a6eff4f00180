// Package natsstream carries streams of bytes between two processes over NATS, also while servers fail. Its main type is [Stream].
package natsstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/sanitize"
)

// The kinds of messages of a stream. A message is a byte for the kind, an offset in the stream (8 bytes, big-endian), and content.
const (
	// kindData carries the bytes from the offset on.
	kindData = 1 + iota
	// kindAck says that all bytes before the offset have come. Its content is the offset up to which the other side may send.
	kindAck
	// kindEnd says that no bytes come from the offset on, and kindEnded answers it when all before have come.
	kindEnd
	kindEnded
	// kindReset ends the stream at once; its content says why.
	kindReset
)

const (
	headSize = 1 + 8
	// window is how many bytes a side may send before the other has read them, and so bounds the memory of either.
	window = 2 << 20
	// maxChunk is the maximum content of a message, in bytes. The server's maximum applies as well.
	maxChunk = 128 << 10
	// maxPendingMessages bounds the messages that have come and are not yet handled.
	maxPendingMessages = 1 << 16
	// maxIdle is the maximum of messages between two beats that bring nothing new. What is sent again is much less.
	maxIdle = 10_000
	// ackDelay is how long an acknowledgment may wait for more bytes, and ackBytes is the number of bytes that do not wait.
	ackDelay = 50 * time.Millisecond
	ackBytes = window / 8
)

// ResetError says that the other side has ended a stream at once, and why.
type ResetError struct{ Reason string }

func (e *ResetError) Error() string { return "the other side ended the connection: " + e.Reason }

// maxReason bounds the reason of a ResetError, in characters.
const maxReason = 500

// Times are the times of a stream. The zero value means the defaults: 1 s, 15 s, 8 s and 3 s.
type Times struct {
	// Beat is how often each side says that it is alive; bytes that are not acknowledged for that long are sent again.
	Beat time.Duration
	// Silence is how long the other side may be silent, Absence the same while the servers know of no subscriber.
	Silence, Absence time.Duration
	// Linger is how long a closed stream tries to send the rest.
	Linger time.Duration
}

func (t Times) orDefault() Times {
	return cmp.Or(t, Times{Beat: time.Second, Silence: 15 * time.Second, Absence: 8 * time.Second, Linger: 3 * time.Second})
}

var (
	errPeerGone = errors.New("the other side does not answer")
	errFlood    = errors.New("the other side sent more than it may")
	errForged   = errors.New("the other side sent an invalid message")
)

// Stream is a stream of bytes to a process, over two subjects. It delivers each byte once and in order, also if messages are
// lost or repeated because a server fails: bytes are sent again until the other side has acknowledged them. It never sends
// more than the other side has room for. One goroutine may read while others write and close.
type Stream struct {
	conn     *nats.Conn
	to, from string
	sub      *nats.Subscription
	chunk    int
	times    Times
	heardOf  chan struct{} // closed at the first message of the other side
	wake     chan struct{} // capacity 1: run has something to do
	done     chan struct{} // closed when the stream has ended and the rest is sent

	mu      sync.Mutex
	changed *sync.Cond
	out     outgoing
	in      incoming
	heard   time.Time // when the last message came
	absent  bool      // the servers know of no subscriber
	closed  time.Time // by this side
	err     error
	message []byte // a buffer
}

// outgoing are bytes to send.
type outgoing struct {
	data  bytes.Buffer // what is not acknowledged
	acked uint64       // the offset of the first byte of data
	sent  uint64       // the offset after the last byte that was sent
	limit uint64       // the offset up to which the other side has room
	moved time.Time    // when acked changed, or bytes were sent again
	ended bool         // the other side has all, and knows that it is all
}

// incoming are bytes that have come.
type incoming struct {
	data     bytes.Buffer // what is not read
	received uint64       // the offset after the last byte of data
	acked    uint64       // what the other side was told of received
	limit    uint64       // and of the room
	due      bool         // an acknowledgment is due
	end      uint64       // the offset of the end
	hasEnd   bool
	idle     int // messages that brought nothing new, since a time
	since    time.Time
}

// atEnd reports whether all bytes have come.
func (i *incoming) atEnd() bool { return i.hasEnd && i.received == i.end }

// Open opens a stream that sends to a subject and receives from another. The connection must outlive it.
func Open(conn *nats.Conn, to, from string, t Times) (*Stream, error) {
	s := &Stream{
		conn: conn, to: to, from: from, times: t.orDefault(), chunk: max(1, min(maxChunk, int(conn.MaxPayload()))-headSize), heard: time.Now(),
		heardOf: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	s.out.limit, s.in.limit = window, window
	var err error
	if s.sub, err = conn.Subscribe(from, s.receive); err != nil {
		return nil, err
	}
	if err := s.sub.SetPendingLimits(maxPendingMessages, 3*window); err != nil {
		return nil, errors.Join(err, s.sub.Unsubscribe())
	}
	go s.run() // until the stream ends
	return s, nil
}

// Read reads what the other side has written.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.in.data.Len() == 0 && len(p) > 0 {
		switch {
		case s.err != nil:
			return 0, s.err
		case !s.closed.IsZero():
			return 0, net.ErrClosed
		case s.in.atEnd():
			return 0, io.EOF
		}
		s.changed.Wait()
	}
	n, _ := s.in.data.Read(p) // never an error, as there is data
	if s.room()-s.in.limit >= window/2 {
		s.sendAck("")
	}
	return n, nil
}

// Write waits until the other side has room.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p) > 0 {
		for s.writable() == nil && s.out.data.Len() >= window {
			s.changed.Wait()
		}
		if err := s.writable(); err != nil {
			return n, err
		}
		part := p[:min(len(p), window-s.out.data.Len())]
		if s.out.data.Len() == 0 {
			s.out.moved = time.Now()
		}
		s.out.data.Write(part)
		s.flush()
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// writable returns why nothing can be written. It is called with mu held.
func (s *Stream) writable() error {
	switch {
	case s.err != nil:
		return s.err
	case !s.closed.IsZero():
		return net.ErrClosed
	case s.in.hasEnd:
		return io.ErrClosedPipe
	}
	return nil
}

// Done is closed when the stream has ended and what was written is sent, or is given up.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Close ends the stream. What was written is sent in the background, for a limited time: see [Stream.Done]. It never fails.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.IsZero() {
		s.closed = time.Now()
		s.send(kindEnd, s.out.acked+uint64(s.out.data.Len()), nil, "")
		s.signal()
	}
	return nil
}

// Fail ends the stream at once. The other side gets the reason as a [ResetError].
func (s *Stream) Fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(why)
}

// signal wakes up all who wait for a change. It is called with mu held.
func (s *Stream) signal() {
	s.changed.Broadcast()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fail ends the stream with an error. It is called with mu held.
func (s *Stream) fail(err error) {
	if s.err == nil {
		s.err = err
		s.signal()
	}
}

// room is the offset up to which this side has room. It is called with mu held.
func (s *Stream) room() uint64 { return s.in.received - uint64(s.in.data.Len()) + window }

// flush sends what the other side has room for. It is called with mu held.
func (s *Stream) flush() {
	data := s.out.data.Bytes()
	for end := min(s.out.acked+uint64(len(data)), s.out.limit); s.out.sent < end; {
		from := s.out.sent - s.out.acked
		part := data[from : from+min(uint64(s.chunk), end-s.out.sent)]
		s.send(kindData, s.out.sent, part, "")
		s.out.sent += uint64(len(part))
	}
}

// sendAck sends what has come and how much room there is. It is called with mu held.
func (s *Stream) sendAck(reply string) {
	s.in.acked, s.in.limit, s.in.due = s.in.received, s.room(), false
	s.send(kindAck, s.in.received, binary.BigEndian.AppendUint64(nil, s.in.limit), reply)
}

// send sends a message. A message that is lost is sent again, so there is no error. It is called with mu held.
func (s *Stream) send(kind byte, offset uint64, content []byte, reply string) {
	s.message = append(binary.BigEndian.AppendUint64(append(s.message[:0], kind), offset), content...)
	_ = s.conn.PublishMsg(&nats.Msg{Subject: s.to, Reply: reply, Data: s.message})
}

// run does what is due until the stream has ended.
func (s *Stream) run() {
	tick := time.NewTicker(s.times.Beat)
	defer tick.Stop()
	for !s.work(time.Now()) {
		select {
		case <-tick.C:
		case <-s.wake:
		}
	}
	_ = s.sub.Unsubscribe() // it fails if the connection has ended
	close(s.done)
}

// work does what is due, and reports whether the stream has ended.
func (s *Stream) work(now time.Time) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	silent := now.Sub(s.heard)
	if s.err == nil && (silent > s.times.Silence || s.absent && silent > s.times.Absence) {
		s.fail(errPeerGone)
	}
	if s.err != nil {
		s.send(kindReset, 0, []byte(s.err.Error()), "")
		return true
	}
	if !s.closed.IsZero() {
		if s.out.ended || s.in.atEnd() || now.Sub(s.closed) > s.times.Linger {
			return true
		}
		s.send(kindEnd, s.out.acked+uint64(s.out.data.Len()), nil, "")
	}
	if s.out.sent > s.out.acked && now.Sub(s.out.moved) >= s.times.Beat {
		s.out.sent, s.out.moved = s.out.acked, now
		s.flush()
	}
	select {
	case <-s.heardOf:
		s.sendAck(s.from) // with a reply subject, the servers tell if nobody listens
	default:
	}
	return false
}

// receive handles a message of the other side, or of a server.
func (s *Stream) receive(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == noResponders {
		s.absent = true
		if !s.isKnown() {
			s.fail(errPeerGone)
		}
		return
	}
	if len(m.Data) < headSize {
		s.fail(errForged)
		return
	}
	s.heard, s.absent = time.Now(), false
	received, acked := s.in.received, s.out.acked
	offset, content := binary.BigEndian.Uint64(m.Data[1:]), m.Data[headSize:]
	err := s.handle(m.Data[0], offset, content)
	if err == nil && received == s.in.received && acked == s.out.acked {
		err = s.countIdle()
	}
	if err != nil {
		s.fail(err)
	}
	if !s.isKnown() {
		close(s.heardOf)
	}
}

// countIdle counts a message that brought nothing new. It is called with mu held.
func (s *Stream) countIdle() error {
	if s.heard.Sub(s.in.since) > s.times.Beat {
		s.in.idle, s.in.since = 0, s.heard
	}
	if s.in.idle++; s.in.idle > maxIdle {
		return errFlood
	}
	return nil
}

// noResponders is the status that a server sends if there is no subscriber.
const noResponders = "503"

// isKnown reports whether the other side has said something. It is called with mu held.
func (s *Stream) isKnown() bool {
	select {
	case <-s.heardOf:
		return true
	default:
		return false
	}
}

// handle handles a message. It is called with mu held.
func (s *Stream) handle(kind byte, offset uint64, content []byte) error {
	switch kind {
	case kindData:
		return s.handleData(offset, content)
	case kindAck:
		return s.handleAck(offset, content)
	case kindEnd:
		return s.handleEnd(offset)
	case kindEnded:
		s.out.ended = s.out.ended || !s.closed.IsZero()
		s.signal()
		return nil
	case kindReset:
		return &ResetError{sanitize.Line(string(content), maxReason)}
	}
	return errForged
}

// handleData keeps bytes that are the next ones. Others were lost or are repeated. It is called with mu held.
func (s *Stream) handleData(offset uint64, content []byte) error {
	end := offset + uint64(len(content))
	switch {
	case end < offset || end > s.room() || s.in.hasEnd && end > s.in.end:
		return errFlood
	case offset <= s.in.received && end > s.in.received:
		s.in.data.Write(content[s.in.received-offset:])
		s.in.received = end
		s.changed.Broadcast()
	}
	if s.in.received-s.in.acked >= ackBytes {
		s.sendAck("")
	} else if !s.in.due {
		s.in.due = true
		time.AfterFunc(ackDelay, s.sendDueAck)
	}
	return nil
}

func (s *Stream) sendDueAck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in.due && s.err == nil {
		s.sendAck("")
	}
}

// handleAck is called with mu held.
func (s *Stream) handleAck(offset uint64, content []byte) error {
	if len(content) != 8 || offset > s.out.sent {
		return errForged
	}
	if offset > s.out.acked {
		s.out.data.Next(int(offset - s.out.acked)) //nolint:gosec // at most a window
		s.out.acked, s.out.moved = offset, time.Now()
		s.changed.Broadcast()
	}
	s.out.limit = max(s.out.limit, binary.BigEndian.Uint64(content))
	s.flush()
	return nil
}

// handleEnd is called with mu held.
func (s *Stream) handleEnd(offset uint64) error {
	if offset < s.in.received || s.in.hasEnd && offset != s.in.end {
		return errForged
	}
	s.in.end, s.in.hasEnd = offset, true
	if s.in.atEnd() {
		s.send(kindEnded, offset, nil, "")
	}
	s.signal()
	return nil
}

// Refuse ends a stream that the other side has opened and this side has not. The other side gets the reason.
func Refuse(conn *nats.Conn, to string, why error) {
	message := append(make([]byte, headSize), why.Error()...)
	message[0] = kindReset
	_ = conn.Publish(to, message) // the other side then waits in vain, for a limited time
}

// WaitHeard waits until the other side has said something, and ends the stream if it does not.
func (s *Stream) WaitHeard(ctx context.Context, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	err := errPeerGone
	select {
	case <-s.heardOf:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return cmp.Or(s.err, err)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
	}
	_ = s.Close() // never an error
	return err
}
