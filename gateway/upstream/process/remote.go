package process

import (
	"context"
	"io"
	"sync"

	"sallyport/internal/sanitize"
)

// Remote returns a Run for a program that runs on another machine: the connection carries its standard input and output. It closes the
// connection.
func Remote(conn io.ReadWriteCloser) Run {
	return func(_ context.Context, streams Streams) (Program, error) {
		_ = streams.Stderr.Close() // nothing is written to it
		r := &remote{conn: conn, done: make(chan struct{})}
		go func() {
			_, _ = io.Copy(conn, streams.Stdin) // its end is that of the program
			r.hangUp()
		}()
		go func() {
			defer close(r.done)
			_, r.err = io.Copy(streams.Stdout, conn)
			r.hangUp()
			_, _ = streams.Stdin.Close(), streams.Stdout.Close()
		}()
		return r, nil
	}
}

// remote is a program that runs on another machine.
type remote struct {
	conn io.ReadWriteCloser
	once sync.Once
	done chan struct{}
	err  error // why the connection ended; set before done is closed
}

func (r *remote) hangUp() { r.once.Do(func() { _ = r.conn.Close() }) }

// Done implements [Program].
func (r *remote) Done() <-chan struct{} { return r.done }

// Status implements [Program].
func (r *remote) Status() string {
	if r.err == nil {
		return "was stopped by the gateway that runs it"
	}
	return "cannot be reached: " + sanitize.Line(r.err.Error(), 300)
}

// Exit implements [Program].
func (*remote) Exit() (status int, exited bool) { return 0, false }

// Close implements [Program].
func (r *remote) Close() error {
	r.hangUp()
	<-r.done
	return nil
}

// Pid implements [Program]: there is no process on this machine.
func (*remote) Pid() int { return 0 }

// IsRemote reports whether the program runs on another machine: see [Remote].
func (p *Process) IsRemote() bool {
	other, ok := p.runner.(program)
	if ok {
		_, ok = other.Program.(*remote)
	}
	return ok
}

// StopOn stops the program when a channel is closed.
func (p *Process) StopOn(lost <-chan struct{}) {
	go func() {
		select {
		case <-lost:
			p.Stop()
		case <-p.done:
		}
	}()
}
