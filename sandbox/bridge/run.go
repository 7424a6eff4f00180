package bridge

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/semaphore"

	"sallyport/internal/tool"
)

// Caller answers the guest's calls.
type Caller interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
}

// Account is the identity and the limits of a program's calls.
type Account struct {
	// Execution is set in every call.
	Execution string
	Caller    Caller
	Limits    Limits
	// Clock is paused by calls that wait for a person, with [tool.Pause]; nil disables that.
	Clock tool.Clock
	// Workspace provides the initial content of /workspace and receives the changes; nil for none.
	Workspace Workspace
}

// Report is the result of a Run.
type Report struct {
	// Result is the guest's report of the program's end, empty without one.
	Result ProgramResult
	// Calls is how many tool calls were made.
	Calls int
	// Emitted is what the program emitted, in order, even if it failed.
	Emitted []tool.Content
	// Notes are for the model: which files of /workspace were not kept.
	Notes []string
	// Started is set when the program was sent to the guest.
	Started bool
	// Reusable means that the guest stays for another program: Run may be called again.
	Reusable bool
}

// keepGrace is the write limit for results of calls that outlived their program, if the
// guest stays.
const keepGrace = time.Second

// Run waits for the guest, sends it the program and answers its calls until it
// reports the program's end, disconnects (ErrClosed, ErrTraffic), ctx ends (its cause)
// or Close is called (net.ErrClosed). Calls still running then are canceled,
// and Run returns after they have ended. started is called when the program has been
// sent. The report holds what is known, also with an error.
//
// After a Report with Kept, Run may be called again, for a program that sees the
// previous one's state in memory. Otherwise the bridge cannot be used again.
func (b *Bridge) Run(ctx context.Context, program Program, account Account, started func()) (Report, error) {
	conn, err := b.wait(ctx)
	if err != nil {
		return Report{}, err
	}
	account.Limits = account.Limits.withDefaults()
	s := &session{Account: account, log: b.log.With("execution", account.Execution), conn: conn, replica: &b.replica, valueLimit: program.ValueLimit, slots: make(chan struct{}, account.Limits.Concurrency), inFlight: semaphore.NewWeighted(account.Limits.InFlight)}
	s.traffic.limit = account.Limits.Traffic
	report, err := s.run(ctx, program, started)
	switch {
	case err == nil:
		return report, nil
	case ctx.Err() != nil:
		return report, context.Cause(ctx)
	case b.isClosed():
		return report, net.ErrClosed
	}
	return report, err
}

// run serves the guest from the start of its program to the end.
func (s *session) run(ctx context.Context, program Program, started func()) (Report, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() }) // unblocks the reader and writers
	defer stop()
	s.conn.SetReadLimit(s.Limits.Frame)
	report := Report{}
	err := s.start(program)
	var end guestFrame
	if err == nil {
		report.Started = true
		started()
		end, err = s.serve(inner)
	}
	cancel()
	kept := err == nil && program.Keep && !end.Leaving
	s.finishCalls(kept)
	if err == nil {
		report.Result = end.programResult(s.valueLimit)
	}
	report.Notes = s.notes
	report.Calls, report.Emitted, report.Reusable = int(s.callCount.Load()), s.emitted.list(), kept && stop()
	return report, err
}

func (s *session) start(program Program) error {
	if s.Workspace != nil {
		room := s.Limits.Quota
		program.Workspace = &room
		if err := s.sendFiles(); err != nil {
			return err
		}
	}
	if s.Limits.Frame != defaultFrame {
		program.Frame = s.Limits.Frame
	}
	frame, err := appendRun(nil, program)
	if err != nil {
		return err
	}
	if err := s.send(frame); err != nil {
		return ErrClosed
	}
	return nil
}

// finishCalls waits for calls that have outlived the program; their results are dropped. If
// kept, a write that blocks longer than keepGrace breaks the connection; otherwise the
// connection is closed.
func (s *session) finishCalls(kept bool) {
	if kept {
		s.conn.expire(time.Now().Add(keepGrace))
	} else {
		_ = s.conn.Close()
	}
	s.write.Lock()
	s.closed = true
	s.write.Unlock()
	s.calls.Wait()
}

// ended reports whether results are no longer sent.
func (s *session) ended() bool {
	s.write.Lock()
	defer s.write.Unlock()
	return s.closed
}

var errEnded = errors.New("the program has ended")

// send writes one frame. If that fails, the guest is disconnected: it would wait
// forever for the result.
func (s *session) send(frame []byte) error { return s.sendMessage(websocket.TextMessage, frame) }

func (s *session) sendMessage(kind int, data []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return errEnded
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.Limits.Write))
	err := s.conn.WriteMessage(kind, data)
	if err != nil {
		_ = s.conn.Close()
	}
	return err
}
