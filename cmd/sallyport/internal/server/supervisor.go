package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/httpapi"
)

// supervisor is systemd, or another supervisor with its notification protocol (sd_notify(3)).
type supervisor struct {
	socket string
	// interval is the interval of watchdog messages; 0 if there is no watchdog.
	interval time.Duration
	log      *slog.Logger
}

// newSupervisor returns the supervisor of the environment's NOTIFY_SOCKET, nil for none.
func (a *app) newSupervisor(log *slog.Logger) *supervisor {
	socket, _ := a.Env("NOTIFY_SOCKET")
	if socket == "" || socket[0] != '/' && socket[0] != '@' {
		return nil
	}
	s := &supervisor{socket: socket, log: log}
	micros, _ := a.Env("WATCHDOG_USEC")
	whom, _ := a.Env("WATCHDOG_PID")
	if n, err := strconv.ParseInt(micros, 10, 64); err == nil && n > 0 && (whom == "" || whom == strconv.Itoa(os.Getpid())) {
		s.interval = time.Duration(n) * time.Microsecond / 2
	}
	return s
}

// notify sends READY, then watchdog messages while the API answers, and STOPPING when ctx ends. Nothing is sent after stop has
// returned.
func (s *supervisor) notify(ctx context.Context, api http.Handler) (stop func()) {
	if s == nil {
		return func() {}
	}
	s.send("READY=1")
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		<-ctx.Done()
		s.send("STOPPING=1")
	})
	if s.interval > 0 {
		work.Go(func() { s.sendHeartbeats(ctx, api) })
	}
	return func() {
		cancel()
		work.Wait()
	}
}

// sendHeartbeats sends a watchdog message at each interval if the API answers.
func (s *supervisor) sendHeartbeats(ctx context.Context, api http.Handler) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for client := (&http.Client{Transport: cli.InProcess(api)}); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := cli.DoJSON(ctx, client, http.MethodGet, "/health", nil, &httpapi.Health{}); err == nil {
			s.send("WATCHDOG=1")
		}
	}
}

// send sends one message. A failure is only logged.
func (s *supervisor) send(message string) {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unixgram", s.socket)
	if err == nil {
		_, err = conn.Write([]byte(message))
		_ = conn.Close()
	}
	if err != nil {
		s.log.Warn("cannot notify the supervisor", "message", message, "error", err)
	}
}
