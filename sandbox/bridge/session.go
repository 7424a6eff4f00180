package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"sallyport/internal/tool"
)

// session is one guest while its program runs.
type session struct {
	bridge     *Bridge
	conn       *websocket.Conn
	valueLimit int
	write      sync.Mutex
	slots      chan struct{}
	calls      sync.WaitGroup
}

func (s *session) serve(ctx context.Context) (Done, error) {
	for {
		frame, err := s.read()
		if err != nil {
			return Done{}, err
		}
		switch frame.Type {
		case "call":
			s.admit(ctx, frame)
		case "emit":
			s.emit(frame)
		case "done":
			return frame.done(s.valueLimit), nil
		}
	}
}

func (s *session) read() (incoming, error) {
	kind, reader, err := s.conn.NextReader()
	if err != nil {
		return incoming{}, closedBy(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return incoming{}, closedBy(err)
	}
	frame, err := parse(data)
	if err != nil || kind != websocket.TextMessage {
		s.bridge.opts.Logger.Warn("guest sent no frame", "execution", s.bridge.opts.Execution, "bytes", len(data))
		return incoming{}, fmt.Errorf("%w: it sent what is no frame", ErrClosed)
	}
	return frame, nil
}

func closedBy(err error) error {
	if errors.Is(err, websocket.ErrReadLimit) {
		return fmt.Errorf("%w: its frame was too large", ErrClosed)
	}
	return ErrClosed
}

// admit starts a call within the limits. The reader waits for a free slot, so
// a flood of calls stops in the guest's own socket buffer.
func (s *session) admit(ctx context.Context, frame incoming) {
	limits := s.bridge.opts.Limits
	if n := s.bridge.calls.Add(1); n > int64(limits.Calls) {
		s.bridge.calls.Add(-1)
		s.fail(frame.ID, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("this program has used up its %d tool calls", limits.Calls), Hint: "fetch more per call, or split the work over several programs"})
		return
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.calls.Go(func() {
		defer func() { <-s.slots }()
		s.call(ctx, frame)
	})
}

func (s *session) call(ctx context.Context, frame incoming) {
	id, err := tool.ParseID(frame.Tool)
	if err == nil {
		err = refuse(id)
	}
	if err != nil {
		s.fail(frame.ID, err)
		return
	}
	p := s.peer(frame)
	result, err := p.during(func() (tool.Result, error) {
		return s.bridge.opts.Caller.Call(ctx, tool.Call{Tool: id, Args: frame.Args, Execution: s.bridge.opts.Execution, Peer: p})
	})
	switch {
	case ctx.Err() != nil: // nobody waits for the answer
	case err != nil:
		s.fail(frame.ID, p.explain(err))
	case result.IsError:
		s.fail(frame.ID, p.explain(&tool.Error{Kind: tool.Failed, Message: failureText(result)}))
	default:
		s.succeed(frame.ID, valueOf(id, result))
	}
}

// peer is the program as the upstream sees it during the call.
func (s *session) peer(frame incoming) *peer {
	p := &peer{send: func(told progress) { _ = s.send(appendProgress(nil, frame.ID, told)) }}
	if frame.Progress {
		p.wake = make(chan struct{}, 1)
	}
	return p
}

func (s *session) succeed(id int64, value tool.Value) {
	frame, err := appendResult(nil, id, value)
	if err != nil {
		s.fail(id, &tool.Error{Kind: tool.Upstream, Message: "the upstream's result is not JSON", Err: err})
		return
	}
	_ = s.send(frame)
}

func failureText(result tool.Result) string {
	if text := result.Text(); text != "" {
		return text
	}
	return "the tool reported an error without a message"
}

func (s *session) fail(id int64, err error) {
	_ = s.send(appendError(nil, id, tool.AsError(err)))
}

// send writes one frame. A guest that cannot be written to is cut off: it would
// wait for ever for the answer that it did not get.
func (s *session) send(frame []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.bridge.opts.Limits.Write))
	err := s.conn.WriteMessage(websocket.TextMessage, frame)
	if err != nil {
		_ = s.conn.Close()
	}
	return err
}
