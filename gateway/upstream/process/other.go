package process

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Program is a program that another package runs, such as in a sandbox.
type Program interface {
	// Done is closed when it has ended and nothing of it is left.
	Done() <-chan struct{}
	// Status says how it ended, as in "exited with status 1". It is called after Done.
	Status() string
	// Close kills it and waits for Done. It is idempotent.
	Close() error
	// Pid returns the ID of a process that belongs to it, 0 if there is none.
	Pid() int
}

// Run starts a program with the streams, which it closes in any case. The program outlives ctx.
type Run func(ctx context.Context, streams Streams) (Program, error)

// StartWith starts the program of an upstream by run.
func StartWith(ctx context.Context, run Run) (*Process, error) {
	p := newProcess()
	theirs, err := p.openPipes()
	if err != nil {
		theirs.close()
		closeAll([]*os.File{p.Stdin, p.Stdout, p.errors})
		return nil, fmt.Errorf("open pipes: %w", err)
	}
	theirs.Log = func(line string) { p.Stderr.add([]byte(line + "\n")) }
	if p.other, err = run(ctx, theirs); err != nil {
		closeAll([]*os.File{p.Stdin, p.Stdout, p.errors})
		return nil, err
	}
	go p.readStderr()
	go p.awaitOther()
	return p, nil
}

// removeTimeout is how long a sandbox may take to be removed, after the output of its program has ended.
const removeTimeout = 2 * time.Second

// exitTimeout is how long the end of the process may take after the end of its output.
func (p *Process) exitTimeout() time.Duration {
	if p.other != nil {
		return removeTimeout
	}
	return pipeTimeout
}

// awaitOther waits for the end of the program and closes its pipes.
func (p *Process) awaitOther() {
	<-p.other.Done()
	p.status = p.other.Status() + after(time.Since(p.started))
	close(p.ended)
	p.closePipes()
	close(p.done)
}

// kill ends the program of another package, which is sent no other signals: the end of its input has asked it to stop.
func (p *Process) kill(sig syscall.Signal) {
	if sig == syscall.SIGKILL {
		_ = p.other.Close()
	}
}
