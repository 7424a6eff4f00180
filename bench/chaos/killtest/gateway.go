package killtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

func listenLocal() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// gateway is a gateway that is killed and started again, at the same address; or a worker.
type gateway struct {
	dir     string
	args    []string // of the command
	ready   *regexp.Regexp
	command func(args ...string) *exec.Cmd
	begin   func(*exec.Cmd) error // starts a command

	mu   sync.Mutex
	cmd  *exec.Cmd
	log  strings.Builder // the errors
	last string          // the last line of any kind
}

const (
	startTime = 3 * time.Minute
	stopTime  = 2 * time.Minute
)

// verb returns a command on the settings and data of the gateway.
func (g *gateway) verb(args ...string) *exec.Cmd {
	cmd := g.command(append(args, "--config", filepath.Join(g.dir, "upstreams.yaml"))...)
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	for _, name := range []string{"TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+g.dir)
	}
	return cmd
}

var listening = regexp.MustCompile(`address=(\S+)`)

// start starts the gateway, and returns when it is ready. One that cannot start, as without a majority of its servers, is started again.
func (g *gateway) start(ctx context.Context) error {
	for end := time.Now().Add(startTime); ; pause(ctx, time.Second) {
		ready, err := g.startOnce(ctx, time.Until(end))
		if ready || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(end) {
			return g.notReady()
		}
	}
}

// startOnce starts the process, and waits until it is ready or has ended.
func (g *gateway) startOnce(ctx context.Context, limit time.Duration) (ready bool, err error) {
	cmd := g.verb(g.args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return false, err
	}
	if err := g.begin(cmd); err != nil {
		return false, err
	}
	g.mu.Lock()
	g.cmd = cmd
	g.mu.Unlock()
	up, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines, once := bufio.NewScanner(stderr), sync.OnceFunc(func() { close(up) })
		for lines.Scan() {
			g.note(lines.Text())
			if g.ready.MatchString(lines.Text()) {
				once()
			}
		}
	}()
	select {
	case <-up:
		return true, nil
	case <-ended:
		_ = cmd.Wait() // the caller starts it again
		return false, nil
	case <-time.After(limit):
		return false, errors.Join(g.notReady(), g.kill())
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// output runs a command on the settings and data of the gateway, and returns what it prints.
func (g *gateway) output(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := g.verb(args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := g.begin(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

// note keeps what the gateway logs as an error, and its last line.
func (g *gateway) note(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = line
	if strings.Contains(line, "level=ERROR") {
		g.log.WriteString(line + "\n")
	}
}

// notReady is the error for a gateway that did not start in time.
func (g *gateway) notReady() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Errorf("%s is not ready:\n%s%s", g.args[0], g.log.String(), g.last)
}

func (g *gateway) process() *exec.Cmd {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cmd
}

func (g *gateway) kill() error {
	cmd := g.process()
	if cmd == nil {
		return nil
	}
	err := cmd.Process.Kill()
	_ = cmd.Wait() // killed
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); errors.Is(err, os.ErrProcessDone) || ok && !status.Signaled() {
		return fmt.Errorf("%s has ended by itself: %s\n%s", g.args[0], cmd.ProcessState, g.errorLog())
	}
	return err
}

// stop ends the gateway as an operator does.
func (g *gateway) stop() error {
	cmd := g.process()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.AfterFunc(stopTime, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("stop the gateway: %w", err)
	}
	return nil
}

// errorLog returns what the gateways have logged as errors.
func (g *gateway) errorLog() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}
