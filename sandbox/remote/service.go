package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"sallyport/sandbox"
)

// ErrNoService is the error for a service that the worker does not have.
var ErrNoService = errors.New("no worker has the service")

// maxServices bounds the services that a worker runs for one gateway at a time.
const maxServices = 16

var errLinkLost = errors.New("the connection to the worker is lost")

// HasService reports whether a worker of this build and these services can start a service for a gateway of this build.
func (here Compat) HasService(there Compat, services []string, name string) bool {
	version, err := here.Agree(there)
	return err == nil && version >= serviceProtocol && slices.Contains(services, name)
}

// Serve starts a service of [WorkerOptions.Services] on the worker. The stream is its standard output and input; what comes from it is
// untrusted. Close ends the service, and unblocks Read and Write. ctx bounds the start only. The service sees the wrappers at /servers: a
// write begins when the worker has those of the last publish.
func (c *Client) Serve(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	start, started, err := c.beginUse(ctx)
	if err != nil {
		return nil, fmt.Errorf("start service: %w", err)
	}
	defer started()
	l, err := c.readyLink(start)
	if err != nil {
		return nil, fmt.Errorf("start service: %w", err)
	}
	if !Here().HasService(l.worker.Compat, l.worker.Services, name) {
		return nil, fmt.Errorf("start service on %s: %w %s", c.name, ErrNoService, name)
	}
	life, leave, err := c.beginUse(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fmt.Errorf("start service: %w", err)
	}
	x, err := l.open(pathService + name)
	if err != nil {
		leave()
		return nil, fmt.Errorf("start service on %s: %w", c.name, err)
	}
	s := &serviceStream{exchange: x, client: c, link: l, life: life, leave: leave}
	context.AfterFunc(life, func() { _ = s.Close() }) // when the client is closed
	return s, nil
}

// serviceStream is a service on a worker, for its gateway.
type serviceStream struct {
	*exchange

	client *Client
	link   *link
	life   context.Context //nolint:containedctx // it ends with the client or the stream
	leave  func()
	once   sync.Once
}

// Write writes to the service's standard input.
func (s *serviceStream) Write(p []byte) (int, error) {
	if !s.link.alive() {
		return 0, errLinkLost
	}
	switch l, err := s.client.readyLink(s.life); {
	case err != nil:
		return 0, err
	case l != s.link:
		return 0, errLinkLost
	}
	return s.exchange.Write(p)
}

// String returns the name of the worker.
func (s *serviceStream) String() string { return s.client.name }

// Close ends the service. It is idempotent.
func (s *serviceStream) Close() error {
	s.once.Do(func() {
		_ = s.exchange.Close() // never an error
		s.leave()
	})
	return nil
}

// services returns the names of the services of a worker.
func (o WorkerOptions) services() []string {
	return slices.Sorted(maps.Keys(o.Services))
}

// service runs a service until its request ends. The request has only its name: all else is the worker's.
func (w *worker) service(rw http.ResponseWriter, r *http.Request) {
	service, known := w.opts.Services[r.PathValue("name")]
	if !known {
		http.Error(rw, "there is no such service", http.StatusNotFound)
		return
	}
	defer w.serving.Add(-1)
	if w.serving.Add(1) > maxServices {
		http.Error(rw, "too many services", http.StatusServiceUnavailable)
		return
	}
	service.ID = fmt.Sprintf("service-%d", w.served.Add(1))
	server, err := w.host.Serve(service)
	if err != nil {
		w.log.WarnContext(r.Context(), "a service could not be started", "service", r.PathValue("name"), "error", err)
		http.Error(rw, "the service could not be started", http.StatusServiceUnavailable)
		return
	}
	s := &requestStream{rw: rw, control: http.NewResponseController(rw), body: r.Body}
	if s.control.Flush() == nil {
		relayService(r.Context(), s, server)
	}
	_ = server.Close() // an error of a sandbox that could not be removed is in the log
}

// relayService copies between a request and a service until either ends, or ctx.
func relayService(ctx context.Context, s *requestStream, server *sandbox.Server) {
	ctx, cancel := context.WithCancel(ctx)
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(server, s.body); cancel() })
	copies.Go(func() { _, _ = io.Copy(s, server); cancel() })
	select {
	case <-ctx.Done():
	case <-server.Done():
		cancel()
	}
	_ = server.Close()
	_ = s.Close()
	_ = s.SetWriteDeadline(time.Now()) // unblocks a write that the gateway does not read
	copies.Wait()
}
