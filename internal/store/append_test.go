package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// behindServers answer as JetStream does right after an election, whose new leader has the messages up to has at first, and all
// of them after some answers. They are for one subject.
type behindServers struct {
	messages []*jetstream.RawStreamMsg
	has      int // how many of them the leader has
	catchUp  int // the number of answers after which it has all; -1 is never
	accepts  bool
}

func (b *behindServers) have() []*jetstream.RawStreamMsg {
	if b.catchUp == 0 {
		b.has = len(b.messages)
	}
	if b.catchUp >= 0 {
		b.catchUp--
	}
	return b.messages[:b.has]
}

// publisher and reader are the two sides of them.
type (
	publisher struct {
		jetstream.JetStream
		*behindServers
	}
	reader struct {
		jetstream.Stream
		*behindServers
	}
)

func (b publisher) PublishMsg(_ context.Context, msg *nats.Msg, _ ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	have := b.have()
	if b.accepts && b.has == len(b.messages) {
		return &jetstream.PubAck{Sequence: have[b.has-1].Sequence + 1}, nil
	}
	for _, m := range b.messages { // "ours" is stored by this attempt, though it is refused
		if string(m.Data) == "ours" {
			m.Header = msg.Header
		}
	}
	return nil, &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}
}

func (b reader) GetMsg(_ context.Context, from uint64, _ ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	for _, m := range b.have() {
		if m.Sequence >= from {
			return m, nil
		}
	}
	return nil, jetstream.ErrMsgNotFound
}

func (b reader) GetLastMsgForSubject(context.Context, string) (*jetstream.RawStreamMsg, error) {
	have := b.have()
	if len(have) == 0 {
		return nil, jetstream.ErrMsgNotFound
	}
	return have[len(have)-1], nil
}

// TestAppendAfterElection: an append after the record with the number 6, which a new leader refuses.
func TestAppendAfterElection(t *testing.T) {
	record := func(number uint64, text string) *jetstream.RawStreamMsg {
		return &jetstream.RawStreamMsg{Sequence: number, Data: []byte(text)}
	}
	earlier := []*jetstream.RawStreamMsg{record(5, "earlier"), record(6, "last")}
	for name, test := range map[string]struct {
		servers behindServers
		want    uint64
		err     error
	}{
		"the leader lacks the last record for a while": {behindServers{messages: earlier, has: 1, catchUp: 5, accepts: true}, 7, nil},
		"ours appears between two looks":               {behindServers{messages: append(earlier[:2:2], record(7, "ours")), has: 2, catchUp: 2}, 7, nil},
		"another's appears between two looks":          {behindServers{messages: append(earlier[:2:2], record(7, "another")), has: 2, catchUp: 2}, 0, ErrConflict},
		"another's is there":                           {behindServers{messages: append(earlier[:2:2], record(7, "another")), has: 3}, 0, ErrConflict},
		"the last record does not come back":           {behindServers{messages: earlier, has: 1, catchUp: -1}, 0, ErrConflict},
		"all records are gone":                         {behindServers{catchUp: -1}, 0, ErrConflict},
		"the servers do not say what is in conflict":   {behindServers{messages: earlier, has: 2, catchUp: -1}, 0, ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := test.servers, time.Now()
				j := &jet{publisher{nil, &s}, reader{nil, &s}, scope{shared: true, denied: func(time.Time) string { return "" }}}
				number, err := j.append(t.Context(), "log.run", message{data: []byte("ours")}, 6)
				if number != test.want || !errors.Is(err, test.err) {
					t.Errorf("%d, %v; want %d, %v", number, err, test.want, test.err)
				}
				if took := time.Since(began); took > patience+time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
