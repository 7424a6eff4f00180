package commandtools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"sallyport/gateway/upstream/process"
	"sallyport/internal/commandtool"
)

// maxStderr bounds what is kept of the stderr of a program, in bytes.
const maxStderr = 64 << 10

// errSlow is the cause of the end of a program that exceeds the timeout of its tool.
var errSlow = errors.New("the timeout of the tool")

// run is one run of a program.
type run struct {
	stdout, stderr *output
	// status is its exit status, if it exited; ended says how it ended otherwise.
	status int
	exited bool
	ended  string
}

// run runs a program to its end, and ends it with ctx. The error says why it did not run.
func (s *server) run(ctx context.Context, c *commandtool.Command, in commandtool.Invocation) (*run, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errSlow)
		defer cancel()
	}
	r := &run{stdout: newOutput(int(s.up.MaxMessage)), stderr: newOutput(maxStderr)}
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs.Log = func(line string) { r.stderr.add([]byte(line + "\n")) }
	program, err := s.isolate.Start(ctx, s.program(c, in.Args), theirs)
	if err != nil {
		return nil, err
	}
	var copied sync.WaitGroup
	copied.Go(func() {
		_, _ = io.WriteString(ours.stdin, in.Stdin)
		_ = ours.stdin.Close()
	})
	copied.Go(func() { r.stdout.read(ours.stdout) })
	copied.Go(func() { r.stderr.read(ours.stderr) })
	r.await(ctx, program, c, s.up.MaxMessage)
	_ = ours.stdin.SetDeadline(time.Now()) // what the program has not read
	copied.Wait()
	return r, nil
}

// await waits for the end of a program. It is ended when it exceeds a limit.
func (r *run) await(ctx context.Context, program process.Program, c *commandtool.Command, most fmt.Stringer) {
	select {
	case <-program.Done():
	case <-r.stdout.full:
		r.ended = fmt.Sprintf("was stopped: it printed more than max_message, %v; ask for less", most)
	case <-ctx.Done():
		r.ended = "was stopped: the call was canceled"
		if errors.Is(context.Cause(ctx), errSlow) {
			r.ended = fmt.Sprintf("was stopped: it ran longer than its timeout, %v", c.Timeout)
		}
	}
	_ = program.Close() // waits until the sandbox is removed
	if r.ended != "" {
		return
	}
	if r.status, r.exited = program.Exit(); !r.exited {
		r.ended = program.Status()
	}
}

// streams are our ends of the pipes of a program.
type streams struct{ stdin, stdout, stderr *os.File }

func (s streams) close() { _, _, _ = s.stdin.Close(), s.stdout.Close(), s.stderr.Close() }

// pipes returns the pipes of a program, our ends and its own.
func pipes() (ours streams, theirs process.Streams, err error) {
	for _, pipe := range []struct{ read, write **os.File }{{&theirs.Stdin, &ours.stdin}, {&ours.stdout, &theirs.Stdout}, {&ours.stderr, &theirs.Stderr}} {
		if *pipe.read, *pipe.write, err = os.Pipe(); err != nil {
			ours.close()
			streams{theirs.Stdin, theirs.Stdout, theirs.Stderr}.close()
			return ours, theirs, fmt.Errorf("make pipe: %w", err)
		}
	}
	return ours, theirs, nil
}

// output keeps the beginning of what a program prints.
type output struct {
	mu   sync.Mutex
	kept []byte
	most int
	more bool          // it printed more than it keeps
	full chan struct{} // closed then
}

func newOutput(most int) *output { return &output{most: most, full: make(chan struct{})} }

func (o *output) add(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	room := min(o.most-len(o.kept), len(data))
	o.kept = append(o.kept, data[:room]...)
	if room < len(data) && !o.more {
		o.more = true
		close(o.full)
	}
}

// read adds what it reads, to the end.
func (o *output) read(from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		o.add(buf[:n])
		if err != nil {
			return
		}
	}
}
