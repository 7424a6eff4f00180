// Package sockets closes all connections of an HTTP transport at once.
package sockets

import (
	"context"
	"net"
	"sync"
)

// Set tracks the connections of one transport. An HTTP/2 connection with a stream that has not fully ended is not
// idle, so [http.Transport.CloseIdleConnections] would leave it open until its idle timeout.
type Set struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex
	open map[*socket]bool // nil after Close
}

// New returns an empty set that connects with dial.
func New(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Set {
	return &Set{dial: dial, open: map[*socket]bool{}}
}

// DialContext is the DialContext of an [http.Transport].
func (s *Set) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	one := &socket{Conn: conn, of: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	s.open[one] = true
	return one, nil
}

// Close closes all connections, including those that are being established.
func (s *Set) Close() {
	s.mu.Lock()
	all := s.open
	s.open = nil
	s.mu.Unlock()
	for one := range all {
		_ = one.Conn.Close()
	}
}

type socket struct {
	net.Conn
	of *Set
}

// Close implements [net.Conn].
func (s *socket) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}
