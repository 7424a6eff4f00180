package remote

import (
	"fmt"
	"slices"
	"sync"

	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// maxPendingOutput is the maximum output that waits for a slow connection, in bytes. More is dropped.
const maxPendingOutput = 256 << 10

// outputRelay sends a program's output to the gateway while it runs. It never blocks the program.
type outputRelay struct {
	messages *bridge.Messages
	wake     chan struct{} // capacity 1
	quit     chan struct{}
	work     sync.WaitGroup

	mu      sync.Mutex
	pieces  []outputChunk
	size    int
	dropped int
}

// outputChunk is output of one stream.
type outputChunk struct {
	kind int
	data []byte
}

// relayOutput starts sending the program's output to the gateway, if requested. end sends the rest and stops.
func (x *execution) relayOutput() (end func()) {
	if !x.streamOutput {
		return func() {}
	}
	s := &outputRelay{messages: x.messages, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	x.job.OnOutput = s.write
	s.work.Go(s.run)
	return func() {
		close(s.quit)
		s.work.Wait()
	}
}

// write queues output. It does not block.
func (s *outputRelay) write(stream sandbox.Stream, p []byte) {
	kind := kindLiveStdout
	if stream == sandbox.Stderr {
		kind = kindLiveStderr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size+len(p) > maxPendingOutput {
		s.dropped += len(p)
		return
	}
	s.size += len(p)
	if n := len(s.pieces); n > 0 && s.pieces[n-1].kind == kind {
		s.pieces[n-1].data = append(s.pieces[n-1].data, p...)
	} else {
		s.pieces = append(s.pieces, outputChunk{kind, slices.Clone(p)})
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run sends queued output until the program has ended and everything is sent.
func (s *outputRelay) run() {
	for {
		select {
		case <-s.wake:
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

func (s *outputRelay) send() error {
	s.mu.Lock()
	pieces, dropped := s.pieces, s.dropped
	s.pieces, s.size, s.dropped = nil, 0, 0
	s.mu.Unlock()
	if dropped > 0 {
		pieces = append(pieces, outputChunk{kindLiveStdout, fmt.Appendf(nil, "\n[... %d bytes not shown ...]\n", dropped)})
	}
	for _, p := range pieces {
		if err := s.messages.WriteMessage(p.kind, p.data); err != nil {
			return err
		}
	}
	return nil
}
