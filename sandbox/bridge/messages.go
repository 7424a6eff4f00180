package bridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// conn is a message connection: a websocket, or [Messages].
type conn interface {
	// NextReader discards the rest of the last message.
	NextReader() (kind int, r io.Reader, err error)
	WriteMessage(kind int, data []byte) error
	SetReadLimit(bytes int64)
	SetWriteDeadline(t time.Time) error
	// expire is SetWriteDeadline that also affects a blocked write.
	expire(t time.Time)
	Close() error
}

type websocketConn struct{ *websocket.Conn }

func (s websocketConn) expire(t time.Time) { _ = s.NetConn().SetWriteDeadline(t) }

// Stream is a bidirectional byte stream. Close unblocks reads and writes.
type Stream interface {
	io.ReadWriteCloser
	SetWriteDeadline(t time.Time) error
}

// Messages frames messages on a stream: each has a byte for its kind, a four-byte big-endian
// length, and its data. Text and binary are the bridge's kinds; kinds from FirstExtension on are
// defined by the creator of the Messages. One goroutine may read, any may write.
type Messages struct {
	stream      Stream
	onExtension func(kind byte, data []byte) error
	limit       int64
	rest        *io.LimitedReader // of the last message
	write       sync.Mutex
}

// FirstExtension is the first message kind that does not belong to the bridge.
const FirstExtension byte = 16

// extensionLimit is the maximum length in bytes of a message that does not belong to the bridge.
const extensionLimit = 2 << 20

var errBadMessage = errors.New("invalid message")

// NewMessages returns the messages of a stream. aside receives messages of kinds from
// FirstExtension on during NextReader, which returns its error; if aside is nil, they are errors.
func NewMessages(stream Stream, aside func(kind byte, data []byte) error) *Messages {
	if aside == nil {
		aside = func(byte, []byte) error { return errBadMessage }
	}
	return &Messages{stream: stream, onExtension: aside, limit: extensionLimit}
}

// SetReadLimit sets the maximum length in bytes of a bridge message; the default is 2 MiB.
func (m *Messages) SetReadLimit(bytes int64) { m.limit = bytes }

// SetWriteDeadline sets the stream's write deadline.
func (m *Messages) SetWriteDeadline(t time.Time) error { return m.stream.SetWriteDeadline(t) }

func (m *Messages) expire(t time.Time) { _ = m.stream.SetWriteDeadline(t) }

// Close closes the stream.
func (m *Messages) Close() error { return m.stream.Close() }

// NextReader returns the next bridge message, after discarding the rest of the last one.
func (m *Messages) NextReader() (kind int, r io.Reader, err error) {
	for {
		kind, size, err := m.next()
		if err != nil {
			return 0, nil, err
		}
		if kind < FirstExtension {
			m.rest = &io.LimitedReader{R: m.stream, N: size}
			return int(kind), &fullReader{m.rest}, nil
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(m.stream, data); err != nil {
			return 0, nil, fmt.Errorf("read message: %w", err)
		}
		if err := m.onExtension(kind, data); err != nil {
			return 0, nil, err
		}
	}
}

// next reads the head of the next message.
func (m *Messages) next() (kind byte, size int64, err error) {
	if m.rest != nil {
		if _, err := io.Copy(io.Discard, m.rest); err != nil {
			return 0, 0, fmt.Errorf("read message: %w", err)
		}
		m.rest = nil
	}
	var head [5]byte
	if _, err := io.ReadFull(m.stream, head[:]); err != nil {
		return 0, 0, fmt.Errorf("read message: %w", err)
	}
	kind, size = head[0], int64(binary.BigEndian.Uint32(head[1:]))
	switch {
	case kind >= FirstExtension && size > extensionLimit, kind < FirstExtension && size > m.limit:
		return 0, 0, websocket.ErrReadLimit
	case kind < FirstExtension && kind != textMessage && kind != binaryMessage:
		return 0, 0, errBadMessage
	}
	return kind, size, nil
}

// fullReader returns io.ErrUnexpectedEOF if the stream ends within a message.
type fullReader struct{ *io.LimitedReader }

func (w fullReader) Read(p []byte) (int, error) {
	n, err := w.LimitedReader.Read(p)
	if err == io.EOF && w.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// maxCopiedMessage is the maximum length in bytes of a message that is copied, to write it in one call.
const maxCopiedMessage = 16 << 10

// WriteMessage writes one message. It is safe for concurrent use.
func (m *Messages) WriteMessage(kind int, data []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(len(data)))
	if int64(len(data)) >= 1<<32 {
		return errBadMessage
	}
	m.write.Lock()
	defer m.write.Unlock()
	if len(data) <= maxCopiedMessage {
		_, err := m.stream.Write(append(head, data...))
		return err
	}
	if _, err := m.stream.Write(head); err != nil {
		return err
	}
	_, err := m.stream.Write(data)
	return err
}

// Attach returns a bridge with the [Relay] at the other end of m as guest. Closing the bridge closes m.
func Attach(m *Messages, opts Options) *Bridge {
	b := &Bridge{log: orDiscard(opts.Logger), connected: make(chan struct{}), closed: make(chan struct{}), conn: m}
	close(b.connected)
	return b
}
