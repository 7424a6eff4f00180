//go:build linux

package sandbox

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stream reads one standard stream of a sandbox from start to end, and writes the
// data to the current writer.
type stream struct {
	pipe    *os.File
	flushed chan struct{}
	ended   chan struct{}

	mu sync.Mutex
	to io.Writer
}

// newStream makes a pipe and reads it. w is the sandbox's end; the caller closes it after the sandbox has inherited it.
func newStream(to io.Writer) (s *stream, w *os.File, err error) {
	s = &stream{flushed: make(chan struct{}), ended: make(chan struct{}), to: to}
	if s.pipe, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	go s.pump()
	return s, w, nil
}

// direct sets the writer of further data.
func (s *stream) direct(to io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

func (s *stream) put(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.to.Write(p)
}

func (s *stream) pump() {
	defer close(s.ended)
	defer func() { _ = s.pipe.Close() }()
	buf := make([]byte, 16<<10)
	for {
		n, err := s.pipe.Read(buf)
		s.put(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = s.pipe.SetReadDeadline(time.Time{})
			s.rest(buf)
			s.flushed <- struct{}{}
		case err != nil:
			return
		}
	}
}

// pipeSize is larger than the default capacity of a pipe.
const pipeSize = 1 << 20

// rest reads the data that is in the pipe, without waiting for more.
func (s *stream) rest(buf []byte) {
	conn, err := s.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		for left := pipeSize; left > 0; {
			n, err := unix.Read(int(fd), buf)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n <= 0 {
				return true
			}
			s.put(buf[:n])
			left -= n
		}
		return true
	})
}

// flush returns when all data that was written to the pipe before has been forwarded.
func (s *stream) flush() {
	if s.pipe.SetReadDeadline(time.Unix(1, 0)) != nil {
		<-s.ended
		return
	}
	select {
	case <-s.flushed:
	case <-s.ended:
	}
}

// await returns when the pipe has no writer any more.
func (s *stream) await() { <-s.ended }
