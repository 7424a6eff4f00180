package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sallyport/internal/natsconn"
	"sallyport/internal/seal"
	"sallyport/internal/sleep"
)

// Remote are NATS servers with JetStream that keep the records of several processes.
type Remote struct {
	// Server are the servers. Its Name is also what other processes see.
	natsconn.Server

	// Replicas is the number of copies of each record: 1, 3 or 5; 0 means 1.
	Replicas int
	// Prefix begins the names of all streams, and is the first word of their subjects; "" means "sallyport".
	Prefix string
	// Seal is the key for records that the servers must not be able to read, which [Store.Seal] returns; nil is none.
	Seal *seal.Key
	// Logger receives what happens with the connection; nil discards it.
	Logger *slog.Logger
	// OnWrite is as in [Options].
	OnWrite func(place string, done bool)
}

const (
	// DefaultPrefix is the prefix of a [Remote] without one.
	DefaultPrefix = "sallyport"
	// patience is how long an operation is repeated while servers elect a leader or the connection is restored.
	patience = 10 * time.Second
	// attemptTimeout is the timeout of one attempt.
	attemptTimeout = 2 * time.Second
	retryInterval  = 100 * time.Millisecond
	// oldestServer is the first version of the servers that sends messages at set times.
	oldestServer = "2.12.0"
)

// Connect returns a store on NATS servers. The error is [ErrRefused] if the servers do not accept this client, or if its
// files cannot be read. Servers that do not answer are no error: until they do, all operations return [ErrUnreachable].
func Connect(r Remote) (*Store, error) {
	r = r.withDefaults()
	m := &remote{set: r, up: make(chan struct{})}
	conn, err := m.connect()
	if err != nil {
		return nil, err
	}
	m.engine = &engine{conn: conn, scope: scope{prefix: r.Prefix, replicas: r.Replicas, shared: true, foreign: m.reportForeign, denied: m.deniedAccess}}
	if m.engine.js, err = jetstream.New(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to %s: %w", r.URL, err)
	}
	return m.open()
}

func (r Remote) withDefaults() Remote {
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	if r.Replicas == 0 {
		r.Replicas = 1
	}
	if r.Prefix == "" {
		r.Prefix = DefaultPrefix
	}
	return r
}

// remote is the connection to the servers of a [Remote].
type remote struct {
	set    Remote
	engine *engine
	denied atomic.Pointer[denial] // the last thing that the servers did not permit
	up     chan struct{}          // closed when the servers have been checked
	failed error                  // why they cannot be used; set before up is closed

	mu       sync.Mutex
	reported map[string]bool
}

// connect connects, or begins to do so in the background if the servers do not answer.
func (m *remote) connect() (*nats.Conn, error) {
	log := m.set.Logger
	conn, unanswered, err := m.set.Connect(
		nats.CustomInboxPrefix("_INBOX."+m.set.Prefix),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { m.note(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("the connection to the store is lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			log.Info("the connection to the store is restored", "server", c.ConnectedServerName())
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if unanswered != nil {
		log.Warn("the store does not answer, new work is refused until it does", "url", m.set.URL, "error", unanswered)
	}
	return conn, nil
}

// note records an error that the servers report.
func (m *remote) note(err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		m.denied.Store(&denial{err.Error(), time.Now()})
	}
	m.set.Logger.Warn("the store reports an error", "error", err)
}

// denial is something that the servers did not permit.
type denial struct {
	text string
	at   time.Time
}

// deniedAccess returns what the servers did not permit since a time, "" for nothing.
func (m *remote) deniedAccess(since time.Time) string {
	if d := m.denied.Load(); d != nil && !d.at.Before(since) {
		return d.text
	}
	return ""
}

// maxReported bounds the foreign messages that are reported.
const maxReported = 1000

// reportForeign logs a message of another program, once.
func (m *remote) reportForeign(subject string, number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprintf("%s %d", subject, number)
	if m.reported[key] || len(m.reported) >= maxReported {
		return
	}
	if m.reported == nil {
		m.reported = map[string]bool{}
	}
	m.reported[key] = true
	m.set.Logger.Error("a message in the store is not a record: it is skipped", "subject", fmt.Sprintf("%.200q", subject), "number", number)
}

// open returns the store. The servers are checked in the background.
func (m *remote) open() (*Store, error) {
	closing, end := context.WithCancel(context.Background())
	s := newStore(m.set.OnWrite)
	s.log = m.set.Logger
	e := m.engine
	s.engine = func() *engine { return e }
	s.open = func(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
		return m.openStream(ctx, name, perSubject, limits)
	}
	s.openAlarms = func(ctx context.Context, name string) (alarmClock, error) { return e.openAlarms(ctx, name) }
	inner := newStore(nil) // for the check itself and for the members, which must not wait for the end of the check
	inner.log, inner.open, inner.openAlarms = s.log, s.open, s.openAlarms
	s.members, s.remote = newMembers(inner, m.set), m
	first := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		defer close(m.up)
		m.failed = m.prepare(closing, inner, sync.OnceFunc(func() { close(first) }))
	})
	work.Go(func() {
		<-m.up
		if m.failed == nil {
			s.members.run(closing)
		}
	})
	s.wait = func(ctx context.Context) error { return m.wait(ctx, closing) }
	s.stop = sync.OnceValue(func() error {
		end()
		work.Wait()
		s.members.leave()
		e.close()
		return nil
	})
	select {
	case <-m.up:
	case <-first:
	}
	select {
	case <-m.up:
		if m.failed != nil {
			return nil, errors.Join(m.failed, s.stop())
		}
	default:
	}
	return s, nil
}

// wait waits until the servers have been checked, for a limited time.
func (m *remote) wait(ctx, closing context.Context) error {
	if closing.Err() != nil {
		return ErrClosed
	}
	select {
	case <-m.up:
		return m.failed
	default:
	}
	late := time.NewTimer(attemptTimeout)
	defer late.Stop()
	select {
	case <-m.up:
		return m.failed
	case <-closing.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return fmt.Errorf("%w: no connection to %s", ErrUnreachable, m.set.URL)
	}
}

// prepare checks the servers and the version of the records, and sets the number of replicas. It repeats that until the
// servers answer, and calls tried if the first attempt finds none.
func (m *remote) prepare(ctx context.Context, s *Store, tried func()) error {
	for {
		err := m.prepareOnce(ctx, s)
		if err == nil || ctx.Err() != nil || !errors.Is(err, ErrUnreachable) {
			if err != nil && ctx.Err() == nil {
				m.set.Logger.Error("records cannot be kept", "url", m.set.URL, "error", err)
			}
			return err
		}
		m.set.Logger.Warn("the store cannot be used yet", "error", err)
		tried()
		if err := sleep.For(ctx, time.Second); err != nil {
			return ErrClosed
		}
	}
}

func (m *remote) prepareOnce(ctx context.Context, s *Store) error {
	conn := m.engine.conn
	if !conn.IsConnected() {
		if err := sleep.For(ctx, retryInterval); err != nil {
			return err
		}
		return fmt.Errorf("%w: no connection to %s", ErrUnreachable, m.set.URL)
	}
	if err := checkServer(conn.ConnectedServerVersion(), conn.MaxPayload()); err != nil {
		return err
	}
	if err := m.setReplicas(ctx); err != nil {
		return err
	}
	return migrateShared(ctx, s, migrations())
}

// checkServer rejects servers that cannot keep records.
func checkServer(version string, payload int64) error {
	if version != "" && olderThan(version, oldestServer) {
		return fmt.Errorf("%w: the server has NATS %s; it must have %s or later", ErrRefused, version, oldestServer)
	}
	if payload < maxPayload {
		return fmt.Errorf("%w: the server accepts messages of %d bytes; set max_payload: 8MB in its configuration", ErrRefused, payload)
	}
	return nil
}

var versionNumber = regexp.MustCompile(`^v?(\d+)\.(\d+)\.(\d+)`)

// olderThan compares versions of servers. An unknown form is not older.
func olderThan(version, other string) bool {
	var a, b [3]int
	for text, into := range map[string]*[3]int{version: &a, other: &b} {
		if _, err := fmt.Sscanf(strings.TrimPrefix(versionNumber.FindString(text), "v"), "%d.%d.%d", &into[0], &into[1], &into[2]); err != nil {
			return false
		}
	}
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// setReplicas gives each existing stream the wanted number of replicas.
func (m *remote) setReplicas(ctx context.Context) error {
	return m.engine.scope.try(ctx, func(ctx context.Context) error {
		found, err := m.engine.list(ctx)
		if err != nil {
			return err
		}
		for _, info := range found {
			set := info.Config
			if set.Replicas == m.set.Replicas {
				continue
			}
			m.set.Logger.Info("changing replicas of records", "stream", set.Name, "from", set.Replicas, "to", m.set.Replicas)
			set.Replicas = m.set.Replicas
			if _, err := m.engine.js.UpdateStream(ctx, set); err != nil {
				return err
			}
		}
		return nil
	})
}

// openStream opens an existing stream, or creates it. The error for a created stream that is missing is ErrCorrupt: to
// recreate it would hide the loss.
func (m *remote) openStream(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
	if name == madePlace { // it has the marks
		return m.engine.stream(ctx, name, perSubject, limits)
	}
	exists, err := m.engine.exists(ctx, name)
	if err != nil {
		return nil, err
	}
	if !exists {
		if err := m.mark(ctx, name); err != nil {
			return nil, err
		}
	}
	made, err := m.createStream(ctx, name, perSubject, limits)
	if err != nil && !exists && errors.Is(err, ErrRefused) {
		err = errors.Join(err, m.unmark(ctx, name))
	}
	return made, err
}

func (m *remote) createStream(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
	if !limits.Keep || perSubject != 1 {
		return m.engine.stream(ctx, name, perSubject, limits)
	}
	made, err := m.engine.stream(ctx, name, perSubject, roomFor(limits))
	if err != nil {
		return nil, err
	}
	return &roomyStream{jet: made, limits: limits}, nil
}

// unmark removes the mark of a stream that the servers refused to create.
func (m *remote) unmark(ctx context.Context, name string) error {
	marks, err := m.engine.stream(ctx, madePlace, 1, madeLimits)
	if err != nil {
		return err
	}
	_, err = marks.append(ctx, madePlace+"."+name, message{deleted: true}, -1)
	return err
}

// mark marks a stream as created; ErrCorrupt if it was created earlier, and is missing.
func (m *remote) mark(ctx context.Context, name string) error {
	marks, err := m.engine.stream(ctx, madePlace, 1, madeLimits)
	if err != nil {
		return err
	}
	subject := madePlace + "." + name
	switch found, err := marks.last(ctx, subject); {
	case err == nil && !found.deleted && time.Since(found.time) > time.Minute: // else another process is creating it
		return fmt.Errorf("%w: the stream %s is gone; restore a backup, or remove the message %s to begin without its records", ErrCorrupt, m.engine.scope.streamName(name), m.engine.scope.subject(subject))
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	}
	_, err = marks.append(ctx, subject, message{}, -1)
	return err
}

// madePlace is the stream with a mark for each stream that was created.
const madePlace = "made"

var madeLimits = Limits{Records: 1000, Bytes: 1 << 20, Keep: true}

// isTemporary reports whether an attempt may succeed later.
func isTemporary(err error) bool {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	if isAPI {
		return !lacksRoom(err) && api.ErrorCode != storeFailed && (api.Code == 503 || api.ErrorCode == duplicateInProgress)
	}
	_, network := errors.AsType[net.Error](err)
	for _, one := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
		nats.ErrNoServers, jetstream.ErrNoStreamResponse, jetstream.ErrNoHeartbeat, jetstream.ErrConsumerLeadershipChanged, jetstream.ErrServerShutdown, errPending,
	} {
		network = network || errors.Is(err, one)
	}
	return network
}

// duplicateInProgress is the engine's code for a message whose first attempt has not ended.
const duplicateInProgress jetstream.ErrorCode = 10158

// try calls f. With a shared engine it repeats that while servers elect a leader or the connection is restored, and the
// error is then ErrUnreachable.
func (c scope) try(ctx context.Context, f func(context.Context) error) error {
	if !c.shared {
		return translate(f(ctx))
	}
	began := time.Now()
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := f(attempt)
		cancel()
		if err == nil || !isTemporary(err) {
			return translate(err)
		}
		if denied := c.denied(began); denied != "" && errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%w: %s", ErrRefused, denied)
		}
		if ctx.Err() == nil && time.Since(began) < patience && sleep.For(ctx, retryInterval) == nil {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("%w: %w", ErrUnreachable, err))
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}
