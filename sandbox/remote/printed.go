package remote

import (
	"fmt"
	"slices"
	"sync"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// maxUnsaid is the maximum output that waits for a slow connection, in bytes. More is dropped.
const maxUnsaid = 256 << 10

// speaker sends a program's output to the gateway while it runs. It never blocks the program.
type speaker struct {
	messages *bridge.Messages
	more     chan struct{} // capacity 1
	quit     chan struct{}
	work     sync.WaitGroup

	mu      sync.Mutex
	pieces  []piece
	size    int
	dropped int
}

// piece is output of one stream.
type piece struct {
	kind int
	data []byte
}

// say starts sending the program's output to the gateway, if requested. end sends the rest and stops.
func (x *execution) say() (end func()) {
	if !x.printed {
		return func() {}
	}
	s := &speaker{messages: x.messages, more: make(chan struct{}, 1), quit: make(chan struct{})}
	x.job.Printed = s.put
	s.work.Go(s.follow)
	return func() {
		close(s.quit)
		s.work.Wait()
	}
}

// put queues output. It does not block.
func (s *speaker) put(stream sandbox.Stream, p []byte) {
	kind := kindPrintedOut
	if stream == sandbox.Stderr {
		kind = kindPrintedErr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size+len(p) > maxUnsaid {
		s.dropped += len(p)
		return
	}
	s.size += len(p)
	if n := len(s.pieces); n > 0 && s.pieces[n-1].kind == kind {
		s.pieces[n-1].data = append(s.pieces[n-1].data, p...)
	} else {
		s.pieces = append(s.pieces, piece{kind, slices.Clone(p)})
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// follow sends queued output until the program has ended and everything is sent.
func (s *speaker) follow() {
	for {
		select {
		case <-s.more:
		case <-s.quit:
			_ = s.send()
			return
		}
		if s.send() != nil { // the connection is gone, and the program with it
			<-s.quit
			return
		}
	}
}

func (s *speaker) send() error {
	s.mu.Lock()
	pieces, dropped := s.pieces, s.dropped
	s.pieces, s.size, s.dropped = nil, 0, 0
	s.mu.Unlock()
	if dropped > 0 {
		pieces = append(pieces, piece{kindPrintedOut, fmt.Appendf(nil, "\n[... %d bytes not shown ...]\n", dropped)})
	}
	for _, p := range pieces {
		if err := s.messages.WriteMessage(p.kind, p.data); err != nil {
			return err
		}
	}
	return nil
}
