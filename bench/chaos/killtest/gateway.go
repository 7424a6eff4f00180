package killtest

import (
	"bufio"
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

// gateway is a gateway that is killed and started again, at the same address.
type gateway struct {
	dir     string
	address string
	command func(args ...string) *exec.Cmd

	mu  sync.Mutex
	cmd *exec.Cmd
	log strings.Builder
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

// start starts the gateway, and returns when it listens.
func (g *gateway) start(ctx context.Context) error {
	cmd := g.verb("serve", "--http", g.address)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	g.mu.Lock()
	g.cmd = cmd
	g.mu.Unlock()
	up := make(chan struct{})
	go func() {
		lines, once := bufio.NewScanner(stderr), sync.OnceFunc(func() { close(up) })
		for lines.Scan() {
			g.note(lines.Text())
			if listening.MatchString(lines.Text()) {
				once()
			}
		}
	}()
	select {
	case <-up:
		return nil
	case <-time.After(startTime):
		return errors.Join(errors.New("the gateway does not listen"), g.kill())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note keeps what the gateway logs as an error.
func (g *gateway) note(line string) {
	if !strings.Contains(line, "level=ERROR") {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log.WriteString(line + "\n")
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
	if errors.Is(err, os.ErrProcessDone) {
		return errors.New("the gateway has ended by itself")
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
