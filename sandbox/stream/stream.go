//go:build linux

// Package stream reads the standard streams of sandboxes.
package stream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Stream reads one standard stream of a sandbox from start to end, and writes the
// data to the current writer.
type Stream struct {
	pipe    *os.File
	flushed chan struct{}
	done    chan struct{}

	mu  sync.Mutex
	dst io.Writer
}

// New makes a pipe and reads it. w is the sandbox's end; the caller closes it after the sandbox has inherited it.
func New(to io.Writer) (s *Stream, w *os.File, err error) {
	s = &Stream{flushed: make(chan struct{}), done: make(chan struct{}), dst: to}
	if s.pipe, w, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	go s.pump()
	return s, w, nil
}

// Redirect sets the writer of further data.
func (s *Stream) Redirect(to io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dst = to
}

func (s *Stream) forward(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.dst.Write(p)
}

func (s *Stream) pump() {
	defer close(s.done)
	defer func() { _ = s.pipe.Close() }()
	buf := make([]byte, 16<<10)
	for {
		n, err := s.pipe.Read(buf)
		s.forward(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = s.pipe.SetReadDeadline(time.Time{})
			s.drain(buf)
			s.flushed <- struct{}{}
		case err != nil:
			return
		}
	}
}

// pipeSize is larger than the default capacity of a pipe.
const pipeSize = 1 << 20

// drain reads the data that is in the pipe, without waiting for more.
func (s *Stream) drain(buf []byte) {
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
			s.forward(buf[:n])
			left -= n
		}
		return true
	})
}

// Flush returns when all data that was written to the pipe before has been forwarded.
func (s *Stream) Flush() {
	if s.pipe.SetReadDeadline(time.Unix(1, 0)) != nil {
		<-s.done
		return
	}
	select {
	case <-s.flushed:
	case <-s.done:
	}
}

// Wait returns when the pipe has no writer any more.
func (s *Stream) Wait() { <-s.done }
