package agent

import (
	"context"
	"errors"

	"sallyport/bench/suite"
)

// Setup is what is behind the tools of one mode.
type Setup struct {
	World *suite.World
	// Upstreams are the names of the servers that are started, of [suite.World.Servers].
	Upstreams []string
	// More are shown beside them.
	More []Catalogue
	// Sallyport is the binary, for [suite.Code]; runsc lies beside it.
	Sallyport string
	// Cache is a folder that several may share, for what makes [suite.Code] start faster and changes no answer; "" is none.
	Cache string
}

// Open is tools whose servers run until they are closed.
type Open interface {
	Tools
	// Close ends the servers and waits for them.
	Close() error
}

// OpenTools starts what one mode needs, and returns when everything is there to be called.
func OpenTools(_ context.Context, mode suite.Mode, _ Setup) (Open, error) {
	return nil, errors.New("open tools: " + string(mode) + " is not there yet")
}
