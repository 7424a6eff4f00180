package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
)

const (
	// maxQueued is the maximum size of queued output for a slow client, in bytes: more is dropped, with an event.
	maxQueued = 256 << 10
	// pieceCost is the overhead of a piece of output, maxPiece the maximum length of a merged piece, in bytes.
	pieceCost, maxPiece = 64, 16 << 10
	// heartbeat is the interval of keep-alive events: proxies close silent connections.
	heartbeat = 15 * time.Second
	// writeTimeout is how long a client may take to read what was sent before the stream ends.
	writeTimeout = 30 * time.Second
)

// The events of streams.
const (
	eventStarted = "started"
	eventOutput  = "output"
	eventDropped = "dropped"
	eventResult  = "result"
	eventError   = "error"
	eventEnded   = "ended"
)

// ProgramBegun is the event that a program starts to run.
type ProgramBegun struct {
	// ID is the id of the execution.
	ID string `json:"id"`
}

// Dropped is the event that output is missing here: the client read too slowly or connected too late.
type Dropped struct {
	// Bytes is the size of the missing output.
	Bytes int64 `json:"bytes"`
}

// wantsEvents reports whether a client asks for a stream of events.
func wantsEvents(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(accept, ",") {
			if kind, _, _ = strings.Cut(kind, ";"); strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// stream sends events (text/event-stream) to one client. Output waits for a slow client in a bounded queue and does not block the
// program. Until it ends, the writing goroutine is the only one that writes.
type stream struct {
	w          http.ResponseWriter
	control    *http.ResponseController
	headerSent bool // something was sent
	err        error

	mu      sync.Mutex
	started string // the id of a started event to send
	pieces  []piece
	size    int // of pieces
	wake    chan struct{}
}

// piece is a piece of output, or a gap in bytes.
type piece struct {
	execution.Printed
	gap int64
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, control: http.NewResponseController(w), wake: make(chan struct{}, 1)}
}

// start queues the started event. It does not block.
func (s *stream) start(id string) {
	s.mu.Lock()
	s.started = id
	s.mu.Unlock()
	s.notify()
}

// print queues output, or drops it if the queue is full. It does not block.
func (s *stream) print(p execution.Printed) {
	if !s.queue(p) {
		s.skip(int64(len(p.Text)))
	}
	s.notify()
}

// queue adds output to the queue, and reports whether there was room.
func (s *stream) queue(p execution.Printed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size+len(p.Text)+pieceCost > maxQueued {
		return false
	}
	if n := len(s.pieces); n > 0 && s.pieces[n-1].Stream == p.Stream && len(s.pieces[n-1].Text)+len(p.Text) <= maxPiece {
		s.pieces[n-1].Text += p.Text
		s.size += len(p.Text)
		return true
	}
	s.pieces = append(s.pieces, piece{Printed: p})
	s.size += len(p.Text) + pieceCost
	return true
}

// skip queues a gap.
func (s *stream) skip(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.pieces); n > 0 && s.pieces[n-1].gap > 0 {
		s.pieces[n-1].gap += bytes
		return
	}
	s.pieces = append(s.pieces, piece{gap: bytes})
}

func (s *stream) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes queued events and heartbeats until quit is closed. If a write fails, it calls fail and returns.
func (s *stream) run(quit <-chan struct{}, fail context.CancelFunc) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for s.err == nil {
		select {
		case <-s.wake:
			s.flush()
		case <-ticker.C:
			s.write([]byte(": nothing new\n\n"))
		case <-quit:
			s.flush()
			return
		}
	}
	fail()
}

// flush writes the queued events.
func (s *stream) flush() {
	s.mu.Lock()
	started, pieces := s.started, s.pieces
	s.started, s.pieces, s.size = "", nil, 0
	s.mu.Unlock()
	var all bytes.Buffer
	if started != "" {
		event(&all, eventStarted, ProgramBegun{started})
	}
	for _, p := range pieces {
		if p.gap > 0 {
			event(&all, eventDropped, Dropped{p.gap})
			continue
		}
		event(&all, eventOutput, p.Printed)
	}
	if all.Len() > 0 {
		s.write(all.Bytes())
	}
}

// send writes one event. The writing goroutine must have ended.
func (s *stream) send(name string, value any) {
	var one bytes.Buffer
	event(&one, name, value)
	s.write(one.Bytes())
}

func event(b *bytes.Buffer, name string, value any) {
	data, err := encodeJSON(value)
	if err != nil { // all types can be encoded
		return
	}
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
}

// write sends bytes, and marks the stream as broken if the client does not read them in time.
func (s *stream) write(data []byte) {
	if s.err != nil {
		return
	}
	if !s.headerSent {
		s.headerSent = true
		header := s.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Accel-Buffering", "no") // of a proxy in between
		s.w.WriteHeader(http.StatusOK)
	}
	_, s.err = writeWithDeadline(s.control, s.w, data)
}

// writeWithDeadline writes and flushes with a deadline, if the connection supports one (a recorder in a test does not).
func writeWithDeadline(control *http.ResponseController, w http.ResponseWriter, data []byte) (int, error) {
	if control.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil {
		defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	}
	n, err := w.Write(data)
	if err == nil {
		if err = control.Flush(); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	return n, err
}

// executeStream is execute for a client that accepts events: it streams the output. An error before the program starts is
// answered as without events.
func (a *api) executeStream(w http.ResponseWriter, r *http.Request) error {
	var in Program
	if err := readBody(r, &in); err != nil {
		return err
	}
	p, err := a.program(in)
	if err != nil {
		return err
	}
	s := newStream(w)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p.OnStart, p.OnOutput = s.start, s.print
	var e execution.Result
	s.runWhile(cancel, func() { e, err = a.service.Execute(ctx, p) })
	switch {
	case err == nil:
		s.send(eventResult, a.executionResponse(e))
	case s.headerSent:
		s.send(eventError, problem(r, statusOf(err), tool.AsError(err)))
	default:
		return err
	}
	return nil
}

// runWhile runs do while a goroutine writes the queued events.
func (s *stream) runWhile(fail context.CancelFunc, do func()) {
	quit := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { s.run(quit, fail) })
	defer work.Wait()
	defer close(quit)
	do()
}
