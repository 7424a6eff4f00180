package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"sallyport/internal/sleep"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// maxPayload is the largest message of a stream, in bytes.
const maxPayload = 8 << 20

// startTime is the timeout for the engine's start: it reads its files.
const startTime = 2 * time.Minute

// answerTime is the timeout for an operation of the engine in this process whose caller sets none: the disk of a busy machine can stop
// for many seconds.
const answerTime = 30 * time.Second

// engine is a connection to NATS: to a server within this process, or to the servers of a [Remote].
type engine struct {
	server *server.Server // nil for a remote one
	conn   *nats.Conn
	js     jetstream.JetStream
	scope  scope
}

// scope is how streams are named and stored. The zero value is that of an engine within this process.
type scope struct {
	prefix   string // of the names of streams, and the first word of their subjects
	replicas int
	shared   bool // other programs may write to the streams
	// foreign reports a message of another program; denied returns what the servers did not permit since a time.
	foreign func(subject string, number uint64)
	denied  func(since time.Time) string
}

// streamName returns the engine's name of a place.
func (c scope) streamName(place string) string {
	if c.prefix == "" {
		return place
	}
	return c.prefix + "_" + place
}

// subject returns the engine's subject for a subject of a place.
func (c scope) subject(of string) string {
	if c.prefix == "" {
		return of
	}
	return c.prefix + "." + of
}

// own is the inverse of subject.
func (c scope) own(subject string) string {
	if c.prefix == "" {
		return subject
	}
	return strings.TrimPrefix(subject, c.prefix+".")
}

// duplicates is how long the engine remembers the ids of messages.
func (c scope) duplicates(age time.Duration) time.Duration {
	const window = 2 * time.Minute
	if c.shared && age == 0 {
		return window
	}
	return min(window, max(age, 100*time.Millisecond))
}

// startEngine starts a server that only this process can reach: it opens no port.
func startEngine(dir string, opts Options) (*engine, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "sallyport", DontListen: true, NoSigs: true, NoLog: true, MaxPayload: maxPayload,
		JetStream: true, StoreDir: dir, JetStreamMaxStore: opts.MaxBytes, JetStreamMaxMemory: 64 << 20, DisableJetStreamBanner: true,
		SyncAlways: true, // otherwise up to two minutes of acknowledged writes may be lost
	})
	if err != nil {
		return nil, fmt.Errorf("make engine: %w", err)
	}
	s.SetLogger(logger{opts.Logger}, false, false)
	e := &engine{server: s, scope: scope{replicas: 1}}
	s.Start()
	if !s.ReadyForConnections(startTime) || !s.JetStreamEnabled() {
		e.close()
		return nil, fmt.Errorf("%w: the engine does not start with %s", ErrCorrupt, dir)
	}
	if e.conn, err = nats.Connect("", nats.InProcessServer(s), nats.Timeout(startTime), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond)); err == nil {
		e.js, err = jetstream.New(e.conn, jetstream.WithDefaultTimeout(answerTime))
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("connect to engine: %w", err)
	}
	return e, nil
}

// close stops the server, and waits until it has written everything.
func (e *engine) close() {
	if e.conn != nil {
		e.conn.Close()
	}
	if e.server == nil {
		return
	}
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

func (e *engine) exists(ctx context.Context, name string) (bool, error) {
	var exists bool
	err := e.scope.try(ctx, func(ctx context.Context) error {
		_, err := e.js.Stream(ctx, e.scope.streamName(name))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		exists = err == nil
		return err
	})
	return exists, err
}

// list returns the streams that exist, by the names of their places.
func (e *engine) list(ctx context.Context) (map[string]*jetstream.StreamInfo, error) {
	found := map[string]*jetstream.StreamInfo{}
	list := e.js.ListStreams(ctx, jetstream.WithStreamListSubject(e.scope.subject(">")))
	for info := range list.Info() {
		if place, ours := strings.CutPrefix(info.Config.Name, e.scope.streamName("")); ours {
			found[place] = info
		}
	}
	return found, list.Err()
}

// stream creates a stream, or sets the limits of an existing one.
func (e *engine) stream(ctx context.Context, name string, perSubject int, limits Limits) (*jet, error) {
	if perSubject == 0 {
		perSubject = -1
	}
	discard := jetstream.DiscardOld
	if limits.Keep {
		discard = jetstream.DiscardNew
	}
	return e.create(ctx, jetstream.StreamConfig{
		Name: name, Discard: discard,
		MaxMsgs: int64(limits.Records), MaxAge: limits.Age, MaxBytes: limits.Bytes, MaxMsgsPerSubject: int64(perSubject),
		Duplicates: e.scope.duplicates(limits.Age),
	})
}

// create creates a stream, or changes an existing one.
func (e *engine) create(ctx context.Context, set jetstream.StreamConfig) (*jet, error) {
	set.Subjects, set.Name = []string{e.scope.subject(set.Name) + ".>"}, e.scope.streamName(set.Name)
	set.Storage, set.Replicas, set.DenyDelete = jetstream.FileStorage, e.scope.replicas, true
	set.AllowDirect = !e.scope.shared // a replica that is not the leader may answer with an older record
	var made jetstream.Stream
	err := e.scope.try(ctx, func(ctx context.Context) (err error) {
		made, err = e.js.CreateOrUpdateStream(ctx, set)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &jet{e.js, made, e.scope}, nil
}

// jet is a stream in JetStream.
type jet struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	scope  scope
}

const (
	// deletedHeader marks a tombstone: a message that deletes its subject's value.
	deletedHeader = "Sallyport-Deleted"
	// recordHeader marks the records of a shared engine: all other messages are of other programs.
	recordHeader = "Sallyport-Record"
)

func (j *jet) append(ctx context.Context, subject string, m message, after int64) (uint64, error) {
	msg := &nats.Msg{Subject: j.scope.subject(subject), Data: m.data, Header: nats.Header{}}
	if m.deleted {
		msg.Header.Set(deletedHeader, "1")
	}
	if j.scope.shared {
		msg.Header.Set(recordHeader, "1")
		msg.Header.Set(jetstream.MsgIDHeader, rand.Text()) // so that a repeated attempt is not a second record
	}
	var opts []jetstream.PublishOpt
	if after >= 0 {
		opts = append(opts, jetstream.WithExpectLastSequencePerSubject(uint64(after)))
	}
	var number uint64
	began := time.Now()
	err := j.scope.try(ctx, func(ctx context.Context) error {
		ack, err := j.js.PublishMsg(ctx, msg, opts...)
		switch {
		case err == nil:
			number = ack.Sequence
		case j.scope.shared && isConflict(err):
			number, err = j.resolve(ctx, msg, uint64(after), err)
			if errors.Is(err, errBehind) && time.Since(began) > settleTime {
				err = ErrConflict
			}
		}
		return err
	})
	return number, err
}

// errPending is that of a message that the servers may have accepted and have not stored yet, errBehind that of one that is to
// follow a message that they do not have, or no longer.
var (
	errPending = errors.New("the servers have not stored all that they accepted")
	errBehind  = fmt.Errorf("%w: the earlier message is missing", errPending)
)

// settleTime is how long a new leader may take to have all messages.
const settleTime = 2 * time.Second

// resolve returns the number of a message that was to be the first after another one, and that servers refused, if an earlier
// attempt has stored it: servers compare the last number of the subject before they look for a duplicate. If another message is
// there, it returns conflict, the error of the attempt. If none is, a new leader may not have all messages yet, and the error is
// errPending or errBehind.
func (j *jet) resolve(ctx context.Context, msg *nats.Msg, after uint64, conflict error) (uint64, error) {
	first, err := j.stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(msg.Subject))
	switch {
	case err == nil && first.Header.Get(jetstream.MsgIDHeader) == msg.Header.Get(jetstream.MsgIDHeader):
		return first.Sequence, nil
	case err == nil:
		return 0, conflict
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, err
	}
	last, err := j.stream.GetLastMsgForSubject(ctx, msg.Subject)
	switch {
	case err == nil && last.Sequence < after:
		return 0, errBehind
	case err == nil || after == 0 && errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, errPending // nothing is in conflict, or it came after the first look
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, conflict // the other message was removed
	}
	return 0, err
}

func (j *jet) last(ctx context.Context, subject string) (m message, err error) {
	err = j.scope.try(ctx, func(ctx context.Context) error {
		raw, err := j.stream.GetLastMsgForSubject(ctx, j.scope.subject(subject))
		if err == nil {
			m = j.message(raw)
		}
		return err
	})
	return m, err
}

func (j *jet) next(ctx context.Context, pattern string, from uint64) (m message, err error) {
	for {
		err = j.scope.try(ctx, func(ctx context.Context) error {
			raw, err := j.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(j.scope.subject(pattern)))
			if err == nil {
				m = j.message(raw)
			}
			return err
		})
		if err != nil || !m.foreign {
			return m, err
		}
		from = m.number + 1
	}
}

func (j *jet) message(raw *jetstream.RawStreamMsg) message {
	return j.received(message{number: raw.Sequence, time: raw.Time, data: raw.Data}, raw.Subject, raw.Header)
}

// received completes a message with what its subject and headers say.
func (j *jet) received(m message, subject string, header nats.Header) message {
	m.subject, m.deleted = j.scope.own(subject), header.Get(deletedHeader) != ""
	if m.foreign = j.scope.isForeign(m.subject, header); m.foreign {
		j.scope.foreign(m.subject, m.number)
	}
	return m
}

// isForeign reports whether a message is of another program. Alarms that are due are sent by the engine.
func (c scope) isForeign(subject string, header nats.Header) bool {
	return c.shared && header.Get(recordHeader) == "" && !strings.HasPrefix(subject, "alarm_")
}

func (j *jet) follow(ctx context.Context, pattern string, from uint64, do func(message) error) error {
	for {
		stopped := false
		err := j.followOnce(ctx, pattern, from, func(m message) error {
			from = m.number + 1
			if m.foreign {
				return nil
			}
			err := do(m)
			stopped = err != nil
			return err
		})
		if stopped || ctx.Err() != nil || !j.scope.shared || errors.Is(err, ErrClosed) {
			return err
		}
		if err := sleep.For(ctx, retryInterval); err != nil { // another server takes over
			return err
		}
	}
}

func (j *jet) followOnce(ctx context.Context, pattern string, from uint64, do func(message) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deliveries := make(chan delivery)
	go j.deliver(ctx, pattern, from, deliveries) // not waited for: while the servers do not answer, the client does not heed ctx
	for {
		var d delivery
		select {
		case d = <-deliveries:
		case <-ctx.Done():
			return ctx.Err()
		}
		if d.err != nil {
			return errors.Join(ctx.Err(), translate(d.err))
		}
		about, err := d.msg.Metadata()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err := do(j.received(message{number: about.Sequence.Stream, time: about.Timestamp, data: d.msg.Data()}, d.msg.Subject(), d.msg.Headers())); err != nil {
			return err
		}
	}
}

// delivery is a message of a stream, or why there are no more.
type delivery struct {
	msg jetstream.Msg
	err error
}

// deliver sends the messages from a number on, until ctx ends.
func (j *jet) deliver(ctx context.Context, pattern string, from uint64, to chan<- delivery) {
	send := func(d delivery) bool {
		select {
		case to <- d:
			return d.err == nil
		case <-ctx.Done():
			return false
		}
	}
	consumer, err := j.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{j.scope.subject(pattern)}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
	})
	if err != nil {
		send(delivery{err: err})
		return
	}
	messages, err := consumer.Messages()
	if err != nil {
		send(delivery{err: err})
		return
	}
	stop := context.AfterFunc(ctx, messages.Stop) // ends a call of Next that does not heed ctx
	defer func() {
		if stop() {
			messages.Stop()
		}
	}()
	for more := true; more; {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		more = send(delivery{msg, err})
	}
}

func (j *jet) remove(ctx context.Context, subject string, upTo uint64) error {
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(j.scope.subject(subject))}
	if upTo > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(upTo+1)) // up to, not including
	}
	return j.scope.try(ctx, func(ctx context.Context) error { return j.stream.Purge(ctx, opts...) })
}

func (j *jet) usage(ctx context.Context) (records int, bytes int64, err error) {
	info, err := j.info(ctx)
	if err != nil {
		return 0, 0, err
	}
	return int(info.State.Msgs), int64(info.State.Bytes), nil
}

func (j *jet) subjects(ctx context.Context, pattern string) (all []string, err error) {
	info, err := j.info(ctx, jetstream.WithSubjectFilter(j.scope.subject(pattern)))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		all = append(all, j.scope.own(subject))
	}
	return all, nil
}

func (j *jet) info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (info *jetstream.StreamInfo, err error) {
	err = j.scope.try(ctx, func(ctx context.Context) error {
		info, err = j.stream.Info(ctx, opts...)
		return err
	})
	return info, err
}

// storeFailed is the engine's code for a message that it could not store, full the prefix of its text if there is no
// room.
const (
	storeFailed jetstream.ErrorCode = 10077
	full                            = "maximum "
)

// isConflict reports whether the last message of a subject is not the expected one.
func isConflict(err error) bool {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	return isAPI && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// The engine's codes for a stream that its servers have no room for: one server, a server of a cluster, and a cluster.
const (
	lacksStorage   jetstream.ErrorCode = 10047
	lacksResources jetstream.ErrorCode = 10023
	lacksPeers     jetstream.ErrorCode = 10005
)

// lacksRoom reports whether the servers cannot reserve the size of a stream.
func lacksRoom(err error) bool {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	return isAPI && (api.ErrorCode == lacksStorage || (api.ErrorCode == lacksPeers || api.ErrorCode == lacksResources) && strings.Contains(api.Description, "insufficient"))
}

// translate maps the engine's errors to ours.
func translate(err error) error {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return nil
	case isConflict(err):
		return ErrConflict
	case isAPI && api.ErrorCode == storeFailed && strings.HasPrefix(api.Description, full):
		return ErrFull
	case lacksRoom(err):
		return fmt.Errorf("%w: the servers have too little room for it (%s); docs/how-to/share-a-store.md says how much max_file_store must allow", ErrRefused, api.Description)
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return ErrNotFound
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrMsgIteratorClosed):
		return ErrClosed
	}
	return fmt.Errorf("records: %w", err)
}

// logger passes the engine's messages to our log. They concern the engine's files, so only problems are above debug
// level.
type logger struct{ log *slog.Logger }

func (l logger) say(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "nats", "text", fmt.Sprintf(format, v...))
	}
}

func (l logger) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l logger) Warnf(format string, v ...any)   { l.say(slog.LevelInfo, format, v) }
func (l logger) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l logger) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l logger) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l logger) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
