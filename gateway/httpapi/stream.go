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
	// maxQueued is how much of what is printed may wait for a client to read it, in bytes: more is dropped, and said to be.
	maxQueued = 256 << 10
	// pieceCost is what a piece of output takes besides its text, maxPiece how long pieces become that are sent together, in bytes.
	pieceCost, maxPiece = 64, 16 << 10
	// heartbeat is the interval of keep-alive events: proxies close silent connections.
	heartbeat = 15 * time.Second
	// writePatience is how long a client may take to read what was sent before it is given up.
	writePatience = 30 * time.Second
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

// ProgramBegun is the event that a program begins to run.
type ProgramBegun struct {
	// ID is that of the execution.
	ID string `json:"id"`
}

// Dropped is the event that output is missing here: the client has read too slowly, or came too late.
type Dropped struct {
	// Bytes is how much.
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

// stream sends events (text/event-stream) to one client, which may read as slowly as it likes: what is printed waits in a queue that
// is bounded, and printing does not wait for it. Its writing goroutine is the only one that writes, until it has ended.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool // something was sent
	broken  error

	mu      sync.Mutex
	started string // an id that is to be told
	pieces  []piece
	size    int // of pieces
	wake    chan struct{}
}

// piece is something that was printed, or a gap of so many bytes.
type piece struct {
	execution.Printed
	gap int64
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, control: http.NewResponseController(w), wake: make(chan struct{}, 1)}
}

// start says that the program has begun. It does not block.
func (s *stream) start(id string) {
	s.mu.Lock()
	s.started = id
	s.mu.Unlock()
	s.poke()
}

// print queues what is printed, or drops it. It does not block.
func (s *stream) print(p execution.Printed) {
	if !s.queue(p) {
		s.skip(int64(len(p.Text)))
	}
	s.poke()
}

// queue reports whether there was room.
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

// skip says that output is missing.
func (s *stream) skip(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.pieces); n > 0 && s.pieces[n-1].gap > 0 {
		s.pieces[n-1].gap += bytes
		return
	}
	s.pieces = append(s.pieces, piece{gap: bytes})
}

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes what comes, and heartbeats, until quit is closed. What cannot be written calls fail, once.
func (s *stream) run(quit <-chan struct{}, fail context.CancelFunc) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for s.broken == nil {
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

// flush writes what is queued.
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

// send writes one event. It is for when the writing goroutine has ended.
func (s *stream) send(name string, value any) {
	var one bytes.Buffer
	event(&one, name, value)
	s.write(one.Bytes())
}

func event(b *bytes.Buffer, name string, value any) {
	data, err := encoded(value)
	if err != nil { // of types of ours
		return
	}
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
}

// write sends bytes, and notes that the client is gone where it does not take them in time.
func (s *stream) write(data []byte) {
	if s.broken != nil {
		return
	}
	if !s.begun {
		s.begun = true
		header := s.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Accel-Buffering", "no") // of a proxy in between
		s.w.WriteHeader(http.StatusOK)
	}
	_, s.broken = patiently(s.control, s.w, data)
}

// patiently writes and flushes within the time that a client has for reading; a test's recorder has all the time.
func patiently(control *http.ResponseController, w http.ResponseWriter, data []byte) (int, error) {
	if control.SetWriteDeadline(time.Now().Add(writePatience)) == nil {
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

// executeStream is execute for a client that wants to see what is printed as it is. What goes wrong before the program's turn is
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
	s.around(cancel, func() { e, err = a.verbs.Execute(ctx, p) })
	switch {
	case err == nil:
		s.send(eventResult, a.executed(e))
	case s.begun:
		s.send(eventError, problem(r, statusOf(err), tool.AsError(err)))
	default:
		return err
	}
	return nil
}

// around writes what comes while do runs.
func (s *stream) around(fail context.CancelFunc, do func()) {
	quit := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { s.run(quit, fail) })
	defer work.Wait()
	defer close(quit)
	do()
}
