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

	"sallyport/internal/machine"
	"sallyport/internal/sanitize"
)

// Dial opens a stream to a worker. The error of the stream's Close may explain why it broke.
type Dial func(ctx context.Context) (io.ReadWriteCloser, error)

// To returns a Dial that runs `sallyport worker --stdio` on the machine with the program that reaches it: ssh, limactl or
// wsl.exe. Closing the stream ends that program.
func To(a machine.Address) Dial {
	return func(context.Context) (io.ReadWriteCloser, error) {
		words := workerCommand(a)
		path, err := exec.LookPath(words[0])
		if err != nil {
			return nil, fmt.Errorf("no %s program found in PATH", words[0])
		}
		cmd := exec.Command(path, words[1:]...) //nolint:noctx // it lives as long as the stream, whose Close ends it
		p := &process{cmd: cmd, name: words[0], stderr: &tail{}}
		cmd.Stderr, cmd.WaitDelay = p.stderr, endTimeout
		if p.in, err = cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		if p.out, err = cmd.StdoutPipe(); err != nil {
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start %s: %w", words[0], err)
		}
		p.close = sync.OnceValue(p.end)
		return p, nil
	}
}

// workerCommand returns the command line that runs the worker on a machine, without a terminal and prompts.
func workerCommand(a machine.Address) []string {
	switch a.Kind {
	case machine.Lima:
		return []string{"limactl", "--tty=false", "shell", "--workdir", "/", a.Host, cmp.Or(a.Path, Installed), "worker", "--stdio"}
	case machine.WSL:
		words := []string{"wsl.exe", "--distribution", a.Host}
		if a.User != "" {
			words = append(words, "--user", a.User)
		}
		return append(words, "--cd", "/", "--exec", cmp.Or(a.Path, Installed), "worker", "--stdio")
	case machine.SSH:
	}
	return append([]string{"ssh"}, sshArgs(a)...)
}

// Installed is where sallyport is in a virtual machine, unless the address names another path.
const Installed = "/usr/local/bin/sallyport"

// sshArgs returns the arguments of ssh, without terminal, agent, forwarding and prompts.
func sshArgs(a machine.Address) []string {
	args := []string{"-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes"}
	if a.Port != "" {
		args = append(args, "-p", a.Port)
	}
	if a.User != "" {
		args = append(args, "-l", a.User)
	}
	return append(args, "--", a.Host, cmp.Or(a.Path, "sallyport")+" worker --stdio")
}

// process is a running program that reaches the machine.
type process struct {
	cmd    *exec.Cmd
	name   string
	in     io.WriteCloser
	out    io.ReadCloser
	stderr *tail
	close  func() error
}

func (p *process) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *process) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the program, and with it the worker. If the program failed, the error is its last message.
func (p *process) Close() error { return p.close() }

// endTimeout is how long the program may take to exit after its input is closed.
const endTimeout = 3 * time.Second

func (p *process) end() error {
	_ = p.in.Close()
	kill := time.AfterFunc(endTimeout, func() {
		_ = p.cmd.Process.Kill()
		_ = p.out.Close() // a child may hold the other end
	})
	defer kill.Stop()
	_, _ = io.Copy(io.Discard, p.out) // Wait requires that all output has been read
	if err := p.cmd.Wait(); err != nil {
		if said := p.stderr.String(); said != "" {
			return errors.New(said)
		}
		return fmt.Errorf("%s: %w", p.name, err)
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

// String returns the last line, sanitized: the program's error message.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.data)), "\n")
	return sanitize.Line(lines[len(lines)-1], 300)
}
