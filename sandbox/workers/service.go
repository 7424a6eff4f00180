package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sallyport/sandbox/remote"
)

// Serve starts a service on a worker that has it, as [remote.Client.Serve] does. It prefers the worker on which this gateway started a
// service longest ago, so that after a failure the next start is on another one.
func (p *Pool) Serve(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	m, err := p.chooseServer(name)
	if err != nil {
		return nil, err
	}
	return m.client.Serve(ctx, name)
}

func (p *Pool) chooseServer(name string) (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the gateway closes")
	}
	var best *member
	for _, m := range p.members {
		if p.available(m) && remote.Here().HasService(m.Speaks, m.Services, name) && (best == nil || p.prefersServer(m, best)) {
			best = m
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w %s", remote.ErrNoService, name)
	}
	p.forgetServed()
	p.served[best.Name] = time.Now()
	return best, nil
}

// prefersServer reports whether m is better than other for the next service. It is called with mu held.
func (p *Pool) prefersServer(m, other *member) bool {
	if a, b := p.served[m.Name], p.served[other.Name]; !a.Equal(b) {
		return a.Before(b)
	}
	return p.prefers(m, other)
}

// forgetServed forgets workers that have left if there are many. It is called with mu held.
func (p *Pool) forgetServed() {
	if len(p.served) < maxWorkers {
		return
	}
	for name := range p.served {
		if !p.isMember(name) {
			delete(p.served, name)
		}
	}
}
