package executor_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/gateway/executor"
	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/tlsfiles"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

func TestMain(m *testing.M) {
	natscluster.Serve()
	os.Exit(m.Run())
}

// TestNoWorker: while no worker has joined, a program is refused with an error that says to try again: it was not started.
func TestNoWorker(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	servers := natscluster.Start(t, 1)
	var settings atomic.Pointer[config.Config]
	cfg := config.Default()
	cfg.Sandbox.Remote = config.RemoteWorkers
	cfg.Store.URL, cfg.Store.Creds, cfg.Store.TLS = servers.URL(), servers.Creds, tlsfiles.Files{CA: servers.CA}
	settings.Store(&cfg)
	s := executor.NewSandboxes(executor.SandboxOptions{Settings: &settings, Logger: testutil.Logger(t)})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Publish(func() map[string][]byte { return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := s.Run(t.Context(), sandbox.Job{ID: "e-1", Interpreter: sandbox.Python, Code: "print(1)"}, toolcall.NoTools{})
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Kind.Status() != http.StatusServiceUnavailable || !e.Retryable || !strings.Contains(e.Message, "no worker takes programs: none has joined: start one with") {
		t.Errorf("%+v", err)
	}
}
