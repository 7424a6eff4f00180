package gateway

import (
	"errors"
	"sync"

	"sallyport/sandbox"
)

// runner owns the sandbox host. It is opened when a program first needs it, and
// tried again at the next program if it could not be: searching and calling
// tools work without gVisor, running code never does.
type runner struct {
	open func() (*sandbox.Host, error)

	mu     sync.Mutex
	host   *sandbox.Host
	files  map[string][]byte
	closed bool
}

var errClosed = errors.New("the gateway is closed")

func (r *runner) get() (*sandbox.Host, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.host != nil {
		return r.host, nil
	}
	host, err := r.open()
	if err != nil {
		return nil, err
	}
	if err := host.Publish(r.files); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	r.host = host
	return host, nil
}

// publish hands the wrappers to the host, or keeps them for when there is one.
func (r *runner) publish(files map[string][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = files
	if r.host == nil || r.closed {
		return nil
	}
	return r.host.Publish(files)
}

func (r *runner) close() error {
	r.mu.Lock()
	host := r.host
	r.host, r.closed = nil, true
	r.mu.Unlock()
	if host == nil {
		return nil
	}
	return host.Close()
}
