package server

import (
	"context"
	"iter"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/catalog"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/internal/testutil"
)

// idle is a gateway without upstreams and programs.
type idle struct {
	httpapi.Service // methods that the test does not call
}

func (*idle) Upstreams() []catalog.Upstream { return nil }
func (*idle) Records(context.Context) iter.Seq2[history.Record, error] {
	return func(func(history.Record, error) bool) {}
}

// TestSupervisor: systemd is notified of readiness, of liveness while the API answers, and of the end.
func TestSupervisor(t *testing.T) {
	path := filepath.Join(testutil.ShortDir(t), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	env := map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "40000"}
	a := &app{App: &cli.App{Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}}
	var ill atomic.Bool
	good := httpapi.New(&idle{}, nil)
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		good.ServeHTTP(w, r)
	})
	heard := func() string {
		t.Helper()
		buf := make([]byte, 100)
		if err := socket.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := a.newSupervisor(testutil.Logger(t)).notify(ctx, api)
	for i, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := heard(); got != want {
			t.Errorf("message %d is %s, want %s", i, got, want)
		}
	}
	ill.Store(true)
	for got := ""; ; { // one may be on its way
		if err := socket.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, err := socket.Read(buf)
		if err != nil {
			break
		}
		if got += string(buf[:n]); got != "WATCHDOG=1" {
			t.Fatalf("heard %s of an API that does not answer", got)
		}
	}
	cancel()
	if got := heard(); got != "STOPPING=1" {
		t.Errorf("the last message is %s", got)
	}
	stop()
}

// TestNoSupervisor: without a socket in the environment nothing is sent.
func TestNoSupervisor(t *testing.T) {
	for name, test := range map[string]struct {
		env     map[string]string
		started bool
	}{
		"nobody":          {nil, false},
		"a relative path": {map[string]string{"NOTIFY_SOCKET": "notify"}, false},
		"watches another": {map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, true},
		"no watch at all": {map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "-5"}, true},
	} {
		a := &app{App: &cli.App{Env: func(name string) (string, bool) { value, ok := test.env[name]; return value, ok }}}
		s := a.newSupervisor(testutil.Logger(t))
		if (s != nil) != test.started || s != nil && s.interval != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		s.notify(t.Context(), nil)()
	}
}
