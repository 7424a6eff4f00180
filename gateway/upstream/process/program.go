package process

import (
	"context"
	"syscall"
	"time"
)

// Program is a program that another package runs, such as in a sandbox.
type Program interface {
	// Done is closed when it has ended and nothing of it is left.
	Done() <-chan struct{}
	// Status says how it ended, as in "exited with status 1". It is called after Done.
	Status() string
	// Exit returns its exit status; exited is false if it was stopped. It is called after Done.
	Exit() (status int, exited bool)
	// Close kills it and waits for Done. It is idempotent.
	Close() error
	// Pid returns the ID of a process that belongs to it, 0 if there is none.
	Pid() int
}

// Run starts a program with the streams, which it closes in any case. The program outlives ctx.
type Run func(ctx context.Context, streams Streams) (Program, error)

// StartWith starts the program of an upstream by run.
func StartWith(ctx context.Context, run Run) (*Process, error) {
	p, theirs, err := newProcess()
	if err != nil {
		return nil, err
	}
	theirs.Log = func(line string) { p.Stderr.add([]byte(line + "\n")) }
	other, err := run(ctx, theirs)
	if err != nil {
		p.closeOwn()
		return nil, err
	}
	p.runner = program{other}
	go p.readStderr()
	go p.await(other)
	return p, nil
}

// await waits for the end of a program and closes its pipes.
func (p *Process) await(other Program) {
	<-other.Done()
	p.status = other.Status() + after(time.Since(p.started))
	close(p.ended)
	p.closePipes()
	close(p.done)
}

// program is a runner of a Program.
type program struct{ Program }

// signal kills the program. It is sent no other signals: the end of its input has asked it to stop.
func (p program) signal(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		_ = p.Close()
	}
}

func (p program) pid() int { return p.Pid() }

// exitTimeout includes the removal of a sandbox.
func (program) exitTimeout() time.Duration { return 2 * time.Second }
