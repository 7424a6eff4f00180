package workers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"sallyport/internal/natsconn"
	"sallyport/internal/sleep"
)

// The maximum numbers of worker processes, of all names and of one.
const maxWorkers, maxInstances = 1024, 8

// registry knows the workers of a cluster by their beats. It is safe for concurrent use.
type registry struct {
	subjects subjects
	conn     *nats.Conn
	log      *slog.Logger

	mu      sync.Mutex
	workers map[string]*Worker // by instance
	sources map[string]*source // by name
	changed chan struct{}      // closed at the next beat
}

// openRegistry begins to hear beats. Servers that do not answer are no error.
func openRegistry(server natsconn.Server, prefix string, log *slog.Logger) (*registry, error) {
	r := &registry{subjects: newSubjects(prefix), log: log, workers: map[string]*Worker{}, sources: map[string]*source{}, changed: make(chan struct{})}
	var err error
	r.conn, _, err = server.Connect(
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("the servers report an error about workers", "error", err)
		}),
		nats.ReconnectHandler(func(*nats.Conn) { r.ask() }),
	)
	if err != nil {
		return nil, err
	}
	if _, err := r.conn.Subscribe(r.subjects.beats(), r.hear); err != nil {
		r.conn.Close()
		return nil, err
	}
	r.ask()
	return r, nil
}

// ask asks all workers for a beat. Without a connection, they are asked when there is one.
func (r *registry) ask() { _ = r.conn.Publish(r.subjects.ask(), nil) }

// hear handles a beat.
func (r *registry) hear(m *nats.Msg) {
	name, instance, ok := r.subjects.parseBeat(m.Subject)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.source(name)
	if from == nil {
		return
	}
	if err := from.count(time.Now()); err != nil {
		from.warn(r.log, "a worker sends too many beats", "worker", name, "error", err)
		return
	}
	b, err := parseBeat(m.Data)
	if err != nil {
		from.warn(r.log, "a beat of a worker is invalid", "worker", name, "error", err)
		return
	}
	known := r.workers[instance]
	if known == nil && (b.Left || !r.hasRoom(name)) || known != nil && known.Name != name {
		return
	}
	r.workers[instance] = &Worker{Beat: b, Name: name, Instance: instance, Seen: time.Now()}
	if b.Left {
		delete(r.workers, instance)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// hasRoom forgets workers that are gone, and reports whether one more of this name may be known. It is called with mu held.
func (r *registry) hasRoom(name string) bool {
	same := 0
	for instance, w := range r.workers {
		switch {
		case time.Since(w.Seen) > goneAfter:
			delete(r.workers, instance)
		case w.Name == name:
			same++
		}
	}
	return len(r.workers) < maxWorkers && same < maxInstances
}

// list returns the workers that are not gone, by name.
func (r *registry) list() []Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hasRoom("")
	all := make([]Worker, 0, len(r.workers))
	for _, w := range r.workers {
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Worker) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Instance, b.Instance)) })
	return all
}

// next returns a channel that is closed at the next beat.
func (r *registry) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// List asks the workers of a cluster what they are, and returns what they say within a time.
func List(ctx context.Context, server natsconn.Server, prefix string, within time.Duration) ([]Worker, error) {
	r, err := askWorkers(ctx, server, prefix, within)
	if err != nil {
		return nil, err
	}
	defer r.conn.Close()
	return r.list(), nil
}

// askWorkers returns a registry with the workers that answer within a time. The caller closes its connection.
func askWorkers(ctx context.Context, server natsconn.Server, prefix string, within time.Duration) (*registry, error) {
	r, err := openRegistry(server, prefix, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err = sleep.For(ctx, within); err == nil && !r.conn.IsConnected() {
		err = fmt.Errorf("no connection to %s", server.URL)
	}
	if err != nil {
		r.conn.Close()
		return nil, err
	}
	return r, nil
}
