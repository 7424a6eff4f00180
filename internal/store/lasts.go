package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Lasts returns the newest record of each key that extends prefix, the oldest first. It asks the servers once, not for each key.
func (l *Log) Lasts(ctx context.Context, prefix Key) (all []Entry, err error) {
	subject, err := l.subject(prefix)
	if err != nil {
		return nil, err
	}
	in, err := l.stream(ctx)
	if err != nil {
		return nil, err
	}
	found, err := in.lasts(ctx, subject+".>")
	for _, m := range found {
		entry, wrong := l.entry(m)
		if wrong == nil && m.foreign {
			entry, wrong = l.lastOwn(ctx, entry.Key)
		}
		if wrong != nil && !errors.Is(wrong, ErrNotFound) && !errors.Is(wrong, ErrCorrupt) {
			return nil, wrong
		}
		if wrong == nil {
			all = append(all, entry)
		}
	}
	return all, err
}

func (j *jet) lasts(ctx context.Context, pattern string) (all []message, err error) {
	err = j.scope.try(ctx, func(ctx context.Context) error {
		all, err = j.lastsOnce(ctx, pattern)
		return err
	})
	return all, err
}

// lastsOnce is one attempt.
func (j *jet) lastsOnce(ctx context.Context, pattern string) ([]message, error) {
	consumer, err := j.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{j.scope.subject(pattern)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, InactiveThreshold: patience,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = j.stream.DeleteConsumer(ctx, consumer.CachedInfo().Name) }() // else the server keeps it until it is inactive
	left := consumer.CachedInfo().NumPending
	if left == 0 {
		return nil, nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	found := map[string]message{}
	var about jetstream.MsgMetadata // of the last message
	for left > 0 {
		msg, err := nextOf(ctx, messages)
		switch {
		case err != nil:
			return nil, err
		case msg == nil:
			if left, err = undelivered(ctx, consumer, about); err != nil {
				return nil, err
			}
			continue
		}
		last, err := msg.Metadata()
		if err != nil {
			return nil, err
		}
		about, left = *last, last.NumPending
		found[msg.Subject()] = j.received(message{number: about.Sequence.Stream, time: about.Timestamp, data: msg.Data()}, msg.Subject(), msg.Headers())
	}
	return byNumber(found), nil
}

// quietTime is the time without a message after which the server is asked whether there are more: one that is removed before it is
// delivered never comes.
const quietTime = 50 * time.Millisecond

// nextOf returns the next message, nil if there is none for a while.
func nextOf(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	msg, err := messages.Next(jetstream.NextContext(quiet))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return msg, err
}

// undelivered returns how many messages are still to come after the last one.
func undelivered(ctx context.Context, consumer jetstream.Consumer, last jetstream.MsgMetadata) (uint64, error) {
	info, err := consumer.Info(ctx)
	if err != nil {
		return 0, err
	}
	received := uint64(0)
	if last.Consumer == info.Name { // the client makes another consumer when it has missed a message
		received = last.Sequence.Consumer
	}
	return info.NumPending + info.Delivered.Consumer - received, nil
}

func (s *memory) lasts(ctx context.Context, pattern string) ([]message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	found := map[string]message{}
	for _, m := range s.all {
		if matches(m.subject, pattern) {
			found[m.subject] = m.clone()
		}
	}
	return byNumber(found), nil
}

// byNumber returns messages in the order of their numbers.
func byNumber(found map[string]message) []message {
	return slices.SortedFunc(maps.Values(found), func(a, b message) int { return cmp.Compare(a.number, b.number) })
}
