package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/sshurl"
)

// Dial opens a stream to a worker. The error of the stream's Close may explain why it broke.
type Dial func(ctx context.Context) (io.ReadWriteCloser, error)

// SSH returns a Dial that runs `sallyport worker --stdio` at the address with the system's
// ssh program. Closing the stream ends ssh.
func SSH(a sshurl.Address) Dial {
	return func(context.Context) (io.ReadWriteCloser, error) {
		path, err := exec.LookPath("ssh")
		if err != nil {
			return nil, errors.New("no ssh program found in PATH")
		}
		cmd := exec.Command(path, sshArgs(a)...) //nolint:noctx // it lives as long as the stream, whose Close ends it
		p := &process{cmd: cmd, stderr: &tail{}}
		cmd.Stderr, cmd.WaitDelay = p.stderr, endTimeout
		if p.in, err = cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		if p.out, err = cmd.StdoutPipe(); err != nil {
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start ssh: %w", err)
		}
		p.close = sync.OnceValue(p.end)
		return p, nil
	}
}

// sshArgs returns the arguments of ssh, without terminal, agent, forwarding and prompts.
func sshArgs(a sshurl.Address) []string {
	args := []string{"-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes"}
	if a.Port != "" {
		args = append(args, "-p", a.Port)
	}
	if a.User != "" {
		args = append(args, "-l", a.User)
	}
	return append(args, "--", a.Host, cmp.Or(a.Path, "sallyport")+" worker --stdio")
}

// process is a running ssh.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	stderr *tail
	close  func() error
}

func (p *process) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends ssh, and with it the worker. If ssh failed, the error is its last message.
func (p *process) Close() error { return p.close() }

// endTimeout is how long ssh may take to exit after its input is closed.
const endTimeout = 3 * time.Second

func (p *process) end() error {
	_ = p.in.Close()
	kill := time.AfterFunc(endTimeout, func() {
		_ = p.cmd.Process.Kill()
		_ = p.out.Close() // a child of ssh may hold the other end
	})
	defer kill.Stop()
	_, _ = io.Copy(io.Discard, p.out) // Wait requires that all output has been read
	if err := p.cmd.Wait(); err != nil {
		if said := p.stderr.String(); said != "" {
			return errors.New(said)
		}
		return fmt.Errorf("ssh: %w", err)
	}
	return nil
}

// tail keeps the end of a process's stderr.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const maxTail = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	t.data = t.data[max(0, len(t.data)-maxTail):]
	return len(p), nil
}

// String returns the last line, sanitized: ssh's error message.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.data)), "\n")
	return sanitize.Line(lines[len(lines)-1], 300)
}
