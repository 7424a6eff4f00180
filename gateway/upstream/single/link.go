package single

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsstream"
)

// subjects are the names of what gateways send each other.
type subjects string

func newSubjects(prefix string) subjects { return subjects("_GATEWAYS." + prefix + ".") }

// dial asks a gateway for a connection to an upstream.
func (s subjects) dial(gateway string) string { return string(s) + "dial." + gateway }

// toRunner and fromRunner carry a connection to the gateway that runs the process of an upstream.
func (s subjects) toRunner(gateway, link string) string {
	return string(s) + "in." + gateway + "." + link
}

func (s subjects) fromRunner(gateway, link string) string {
	return string(s) + "out." + gateway + "." + link
}

// Rights returns the subjects that a gateway needs, in addition to the rights on its records.
func Rights(prefix string) (publish, subscribe []string) {
	s := newSubjects(prefix)
	all := []string{s.dial("*"), s.toRunner("*", "*"), s.fromRunner("*", "*")}
	return all, all
}

var (
	errNotHere = errors.New("this gateway does not run it")
	errFull    = errors.New("this gateway serves as many others as it may")
)

// dial connects to an upstream at another gateway. The upstream is connected then.
func (r *Runner) dial(ctx context.Context, id, gateway string) (*natsstream.Stream, error) {
	link := natsstream.NewID()
	from := r.subjects.fromRunner(gateway, link)
	s, err := natsstream.Open(r.conn, r.subjects.toRunner(gateway, link), from, natsstream.Times{})
	if err != nil {
		return nil, err
	}
	if err := r.conn.PublishRequest(r.subjects.dial(gateway), from, []byte(link+" "+id)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.WaitHeard(ctx, dialTimeout); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // never an error
	defer stop()
	if _, err := s.Read(make([]byte, 1)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// accept serves another gateway that asks for a connection.
func (r *Runner) accept(m *nats.Msg) {
	link, id, ok := strings.Cut(string(m.Data), " ")
	if !ok || !natsstream.IsID(link) {
		return
	}
	to := r.subjects.fromRunner(r.self, link)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[id]
	switch {
	case r.links[link] != nil: // a message that was repeated
		return
	case h == nil || r.quit.Err() != nil:
		natsstream.Refuse(r.conn, to, errNotHere)
		return
	case len(r.links) >= maxLinks:
		natsstream.Refuse(r.conn, to, errFull)
		return
	}
	s, err := natsstream.Open(r.conn, to, r.subjects.toRunner(r.self, link), natsstream.Times{})
	if err != nil {
		natsstream.Refuse(r.conn, to, err)
		return
	}
	r.links[link], h.links[s] = s, true
	r.work.Go(func() { r.serve(link, id, h, s) })
}

// serve serves another gateway until its connection ends.
func (r *Runner) serve(link, id string, h *hold, s *natsstream.Stream) {
	if err := r.opts.Serve(r.quit, id, s); err != nil {
		r.log.Debug("a connection of another gateway has ended", "upstream", id, "error", err)
		s.Fail(err)
	}
	_ = s.Close() // never an error
	<-s.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, link)
	delete(h.links, s)
}
