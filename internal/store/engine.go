package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// maxPayload is the largest message of a stream, in bytes.
const maxPayload = 8 << 20

// startTime is the timeout for the engine's start: it reads its files.
const startTime = 2 * time.Minute

// engine is a NATS server within this process, and our connection to it.
type engine struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
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
	e := &engine{server: s}
	s.Start()
	if !s.ReadyForConnections(startTime) || !s.JetStreamEnabled() {
		e.close()
		return nil, fmt.Errorf("%w: the engine does not start with %s", ErrCorrupt, dir)
	}
	if e.conn, err = nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond)); err == nil {
		e.js, err = jetstream.New(e.conn)
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
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

func (e *engine) exists(ctx context.Context, name string) (bool, error) {
	_, err := e.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, translate(err)
}

// stream creates a stream, or sets the limits of an existing one.
func (e *engine) stream(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
	if perSubject == 0 {
		perSubject = -1
	}
	discard := jetstream.DiscardOld
	if limits.Keep {
		discard = jetstream.DiscardNew
	}
	made, err := e.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.FileStorage, Replicas: 1, Discard: discard,
		MaxMsgs: int64(limits.Records), MaxAge: limits.Age, MaxBytes: limits.Bytes, MaxMsgsPerSubject: int64(perSubject),
		Duplicates: min(2*time.Minute, max(limits.Age, 100*time.Millisecond)), AllowDirect: true, DenyDelete: true,
	})
	if err != nil {
		return nil, translate(err)
	}
	return &jet{e.js, made}, nil
}

// jet is a stream in JetStream.
type jet struct {
	js     jetstream.JetStream
	stream jetstream.Stream
}

// deletedHeader marks a tombstone: a message that deletes its subject's value.
const deletedHeader = "Sallyport-Deleted"

func (j *jet) append(ctx context.Context, subject string, m message, after int64) (uint64, error) {
	msg := &nats.Msg{Subject: subject, Data: m.data}
	if m.deleted {
		msg.Header = nats.Header{deletedHeader: {"1"}}
	}
	var opts []jetstream.PublishOpt
	if after >= 0 {
		opts = append(opts, jetstream.WithExpectLastSequencePerSubject(uint64(after)))
	}
	ack, err := j.js.PublishMsg(ctx, msg, opts...)
	if err != nil {
		return 0, translate(err)
	}
	return ack.Sequence, nil
}

func (j *jet) last(ctx context.Context, subject string) (message, error) {
	return asMessage(j.stream.GetLastMsgForSubject(ctx, subject))
}

func (j *jet) next(ctx context.Context, pattern string, from uint64) (message, error) {
	return asMessage(j.stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(pattern)))
}

func asMessage(raw *jetstream.RawStreamMsg, err error) (message, error) {
	if err != nil {
		return message{}, translate(err)
	}
	return message{subject: raw.Subject, number: raw.Sequence, time: raw.Time, data: raw.Data, deleted: raw.Header.Get(deletedHeader) != ""}, nil
}

func (j *jet) follow(ctx context.Context, pattern string, from uint64, do func(message) error) error {
	consumer, err := j.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{pattern}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
	})
	if err != nil {
		return translate(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return translate(err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return errors.Join(ctx.Err(), translate(err))
		}
		about, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err := do(message{subject: msg.Subject(), number: about.Sequence.Stream, time: about.Timestamp, data: msg.Data(), deleted: msg.Headers().Get(deletedHeader) != ""}); err != nil {
			return err
		}
	}
}

func (j *jet) remove(ctx context.Context, subject string, upTo uint64) error {
	opts := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if upTo > 0 {
		opts = append(opts, jetstream.WithPurgeSequence(upTo+1)) // up to, not including
	}
	return translate(j.stream.Purge(ctx, opts...))
}

func (j *jet) usage(ctx context.Context) (records int, bytes int64, err error) {
	info, err := j.stream.Info(ctx)
	if err != nil {
		return 0, 0, translate(err)
	}
	return int(info.State.Msgs), int64(info.State.Bytes), nil
}

func (j *jet) subjects(ctx context.Context) ([]string, error) {
	info, err := j.stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, translate(err)
	}
	return slices.Collect(maps.Keys(info.State.Subjects)), nil
}

// storeFailed is the engine's code for a message that it could not store, full the prefix of its text if there is no
// room.
const (
	storeFailed jetstream.ErrorCode = 10077
	full                            = "maximum "
)

// translate maps the engine's errors to ours.
func translate(err error) error {
	api, isAPI := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return nil
	case isAPI && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return ErrConflict
	case isAPI && api.ErrorCode == storeFailed && strings.HasPrefix(api.Description, full):
		return ErrFull
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
