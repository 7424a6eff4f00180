package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/semaphore"

	"sallyport/internal/reclaim"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// session is one guest while one program runs.
type session struct {
	Account
	log        *slog.Logger
	conn       conn
	valueLimit int
	slots      chan struct{}
	inFlight   *semaphore.Weighted // bytes of Limits.InFlight
	calls      sync.WaitGroup
	callCount  atomic.Int64
	emitted    emittedItems
	traffic    meter
	replica    *replica
	notes      []string

	large  sync.Mutex // serializes encoding and sending of large results
	write  sync.Mutex // serializes writes, and guards over
	closed bool
}

// serve answers the guest until it reports the program's end.
func (s *session) serve(ctx context.Context) (guestFrame, error) {
	for {
		frame, content, err := s.next(ctx)
		if err == nil && content != nil {
			err = errFileProtocol
		}
		switch {
		case err != nil:
			s.logGuestError(err)
			return guestFrame{}, err
		case frame.Type == "done":
			return frame, nil
		case frame.Type == "copied":
			s.replica.setClock(frame.Clock)
		default:
			frame, err = s.receiveFiles(ctx, frame)
			s.logGuestError(err)
			return frame, err
		}
	}
}

// next answers the guest's calls until it sends a frame about the program's end or about
// files, and returns that frame, or a message with contents.
func (s *session) next(ctx context.Context) (guestFrame, io.Reader, error) {
	for {
		frame, content, err := readMessage(s.conn)
		if err != nil || content != nil && s.Workspace != nil {
			return guestFrame{}, content, err
		}
		if content != nil {
			return guestFrame{}, nil, errFileProtocol
		}
		if frame.Type == "done" || s.Workspace != nil && (frame.Type == "files" || frame.Type == "copied") {
			return frame, nil, nil
		}
		within := s.traffic.count(frame.size)
		switch {
		case s.traffic.exhausted():
			return guestFrame{}, nil, ErrTraffic
		case frame.Type != "call" && frame.Type != "emit":
		case !within:
			s.fail(frame.ID, s.traffic.limitError("a frame", frame.size))
		case frame.Type == "call":
			s.admit(ctx, frame)
		default:
			s.emit(frame)
		}
	}
}

// disconnect is ErrClosed, with the error of the connection for the log.
type disconnect struct{ cause error }

func (d disconnect) Error() string { return ErrClosed.Error() }
func (d disconnect) Unwrap() error { return ErrClosed }

// logGuestError logs a protocol error of the guest. A mere disconnect is normal: each process that exits has one.
func (s *session) logGuestError(err error) {
	if d, ok := errors.AsType[disconnect](err); ok {
		s.log.Debug("guest disconnected", "error", d.cause)
		return
	}
	if err != nil && err != ErrClosed { //nolint:errorlint // what wraps it says more
		s.log.Warn("guest was cut off", "error", err)
	}
}

// read reads a frame of the expected kind.
func read(conn conn) (guestFrame, error) {
	frame, content, err := readMessage(conn)
	if err == nil && content != nil {
		err = errFileProtocol
	}
	return frame, err
}

// readMessage reads a frame, or returns the reader of a binary message.
func readMessage(conn conn) (guestFrame, io.Reader, error) {
	kind, reader, err := conn.NextReader()
	if err != nil {
		return guestFrame{}, nil, closedBy(err)
	}
	if kind == websocket.BinaryMessage {
		return guestFrame{}, reader, nil
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return guestFrame{}, nil, closedBy(err)
	}
	frame, err := parse(data)
	if err != nil {
		return guestFrame{}, nil, fmt.Errorf("%w: it sent an invalid frame of %d bytes", ErrClosed, len(data))
	}
	return frame, nil, nil
}

// sendFiles sends the guest the workspace files that it does not have.
func (s *session) sendFiles() error {
	if s.replica.versions == nil {
		s.replica.versions = map[string]string{}
	}
	send := func(kind int, data []byte) error {
		if err := s.sendMessage(kind, data); err != nil {
			return ErrClosed
		}
		return nil
	}
	notes := workspace.Notes{What: "not in the sandbox"}
	err := s.replica.send(s.Workspace, &fileSender{send: send}, &notes)
	s.notes = notes.Lines()
	return err
}

// receiveFiles updates the workspace with the guest's files, and returns the frame of the program's end.
func (s *session) receiveFiles(ctx context.Context, first guestFrame) (guestFrame, error) {
	in := newIntake(s.replica, s.Limits.Quota, func() (guestFrame, io.Reader, error) {
		if frame := first; frame.Type != "" {
			first = guestFrame{}
			return frame, nil, nil
		}
		return s.next(ctx)
	})
	notes, err := in.run(s.Workspace)
	if err != nil {
		s.log.Error("keep the files of a program", "error", err)
	}
	s.notes = append(s.notes, notes...)
	return in.end, in.err
}

func closedBy(err error) error {
	if errors.Is(err, websocket.ErrReadLimit) {
		return fmt.Errorf("%w: its frame was too large", ErrClosed)
	}
	return disconnect{err}
}

// admit starts a call within the limits. The reader blocks until a slot and memory for the
// arguments are free, so a flood of calls stops in the guest's own socket buffer.
func (s *session) admit(ctx context.Context, frame guestFrame) {
	limits := s.Limits
	if n := s.callCount.Add(1); n > int64(limits.Calls) {
		s.callCount.Add(-1)
		s.fail(frame.ID, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("this program has used up its %d tool calls", limits.Calls), Hint: "fetch more per call, or split the work over several programs"})
		return
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	size := min(int64(frame.size), limits.InFlight)
	if s.inFlight.Acquire(ctx, size) != nil {
		<-s.slots
		return
	}
	s.calls.Go(func() {
		defer func() {
			s.inFlight.Release(size)
			<-s.slots
		}()
		s.call(ctx, frame)
	})
}

func (s *session) call(ctx context.Context, frame guestFrame) {
	id, err := tool.ParseID(frame.Tool)
	if err == nil {
		err = checkMethod(id)
	}
	if err != nil {
		s.fail(frame.ID, err)
		return
	}
	if s.Clock != nil {
		ctx = tool.WithClock(ctx, s.Clock)
	}
	p := s.peer(frame)
	if raw, ok := s.Caller.(rawCaller); ok {
		s.relayCall(ctx, raw, frame, id, p)
		return
	}
	result, err := p.callWithProgress(func() (tool.Result, error) {
		return s.Caller.Call(ctx, tool.Call{Tool: id, Args: frame.Args, Execution: s.Execution, Peer: p})
	})
	switch {
	case ctx.Err() != nil: // the result is no longer needed
	case err != nil:
		s.fail(frame.ID, p.explain(err))
	case result.IsError:
		s.fail(frame.ID, p.explain(&tool.Error{Kind: tool.Failed, Message: failureText(result)}))
	default:
		s.deliver(frame.ID, id, result)
	}
}

// peer returns the peer of the upstream during the call.
func (s *session) peer(frame guestFrame) *peer {
	p := &peer{send: func(told progress) {
		if news := appendProgress(nil, frame.ID, told); s.traffic.reserve(len(news)) {
			_ = s.send(news)
		}
	}}
	if frame.Progress {
		p.wake = make(chan struct{}, 1)
	}
	return p
}

// largeResult is the length in bytes from which results are sent one at a time: each encoded
// result is a second copy in memory, for as long as the guest takes to read it.
const largeResult = 4 << 20

// deliver sends a tool's result to the program, as a value.
func (s *session) deliver(id int64, of tool.ID, result tool.Result) {
	size := sizeOf(result)
	if size > largeResult {
		s.large.Lock()
		defer s.large.Unlock()
		if s.ended() {
			return
		}
	}
	value := valueOf(of, result)
	reclaim.Copy(size)
	s.sendValue(id, value)
}

func (s *session) sendValue(id int64, value tool.Value) {
	frame, err := appendResult(nil, id, value)
	s.sendResult(id, frame, err)
}

// sizeOf returns the approximate size of a result in memory, in bytes.
func sizeOf(result tool.Result) int {
	size := len(result.Structured)
	for _, c := range result.Content {
		size += len(c.Text) + len(c.Data)
	}
	return size
}

// sendResult sends a result, or an error if it could not be encoded or exceeds the traffic limit.
func (s *session) sendResult(id int64, frame []byte, err error) {
	if err != nil {
		s.fail(id, &tool.Error{Kind: tool.Upstream, Message: "the upstream's result is not JSON", Err: err})
		return
	}
	if !s.traffic.reserve(len(frame)) {
		s.fail(id, s.traffic.limitError("the result", len(frame)))
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
	frame := appendError(nil, id, tool.AsError(err))
	s.traffic.count(len(frame))
	_ = s.send(frame)
}
