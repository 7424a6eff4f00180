package httpserver

import (
	"net"
	"time"
)

// NewLimited is a listener with a bounded number of connections.
func NewLimited(l net.Listener, most int) net.Listener { return newLimitedListener(l, most) }

// NewHasty is a front door that waits for slow clients for less than people do.
func NewHasty(l net.Listener, opts *Options, patience time.Duration) *Server {
	return newServer(l, opts, patience)
}
