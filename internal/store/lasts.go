package store

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

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
	for left > 0 {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		about, err := msg.Metadata()
		if err != nil {
			return nil, err
		}
		left = about.NumPending
		found[msg.Subject()] = j.received(message{number: about.Sequence.Stream, time: about.Timestamp, data: msg.Data()}, msg.Subject(), msg.Headers())
	}
	return byNumber(found), nil
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
