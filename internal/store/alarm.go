package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// maxAlarms bounds the disk space of alarms, in bytes. All of them can be restored from their schedules.
const maxAlarms = 32 << 20

// openAlarms returns a stream whose messages the engine moves from a subject below "at" to one below "due" when they are
// due. Each is for one time only: the engine's repeated messages are not usable, as it forgets those that were due
// while it was down, may send one twice after a kill, and does not report the due time.
func (e *engine) openAlarms(ctx context.Context, name string) (alarmClock, error) {
	made, err := e.create(ctx, jetstream.StreamConfig{
		Name: name, Discard: jetstream.DiscardOld, MaxBytes: maxAlarms, MaxMsgsPerSubject: 1, Duplicates: 100 * time.Millisecond,
		AllowMsgSchedules: true, AllowRollup: true,
	})
	if err != nil {
		return nil, err
	}
	return &jetAlarms{made, name + ".at.", name + ".due."}, nil
}

// jetAlarms implements bell with JetStream.
type jetAlarms struct {
	jet     *jet
	at, due string // prefixes of the subjects
}

func (b *jetAlarms) set(ctx context.Context, subject string, at time.Time) error {
	msg := &nats.Msg{Subject: b.jet.scope.subject(b.at + subject), Header: nats.Header{
		jetstream.ScheduleHeader:       {"@at " + at.UTC().Format(time.RFC3339Nano)},
		jetstream.ScheduleTargetHeader: {b.jet.scope.subject(b.due + subject)},
	}}
	return b.jet.scope.try(ctx, func(ctx context.Context) error {
		_, err := b.jet.js.PublishMsg(ctx, msg)
		return err
	})
}

func (b *jetAlarms) cancel(ctx context.Context, subject string) error {
	return errors.Join(b.jet.remove(ctx, b.at+subject, 0), b.jet.remove(ctx, b.due+subject, 0))
}

func (b *jetAlarms) listen(ctx context.Context, begin func() error, rung func(subject string) error) error {
	info, err := b.jet.info(ctx)
	if err != nil {
		return err
	}
	from := info.State.LastSeq + 1
	if err := errors.Join(b.jet.remove(ctx, b.due+">", info.State.LastSeq), begin()); err != nil { // begin handles alarms that fired before
		return err
	}
	return b.jet.follow(ctx, b.due+">", from, func(m message) error {
		subject := strings.TrimPrefix(m.subject, b.due)
		if err := rung(subject); err != nil {
			return err
		}
		return b.jet.remove(ctx, m.subject, m.number)
	})
}
