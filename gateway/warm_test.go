package gateway_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/sandbox"
)

// TestWarm: sandboxes of both languages wait before the first program comes, which gets one of them.
func TestWarm(t *testing.T) {
	t.Parallel()
	log := &records{}
	cfg := withRunsc(t, settings(nil))
	cfg.Sandbox.Pool = config.Default().Sandbox.Pool
	g := open(t, cfg, &gateway.Options{Logger: slog.New(log), Snapshots: t.TempDir()})
	g.Executor.Warm(t.Context())
	testutil.Eventually(t, "a sandbox of either language waits", time.Minute, func() bool {
		return waits(log, sandbox.Python) && waits(log, sandbox.Node)
	})
	for language, code := range map[string]string{"python": "6 * 7", "typescript": "6 * 7"} {
		if e := execute(t, g, language, code); e.Text() != "42" {
			t.Errorf("%s: %s", language, e.Text())
		}
	}
}

// waits reports whether the log tells of a sandbox that waits.
func waits(log *records, i sandbox.Interpreter) bool {
	return slices.ContainsFunc(log.find("sandbox waits"), func(attrs map[string]string) bool { return attrs["interpreter"] == string(i) })
}

// TestWarmForNothing: where nothing can wait it does no harm, nor does a gateway that closes at once.
func TestWarmForNothing(t *testing.T) {
	t.Parallel()
	log := &records{}
	cfg := settings(nil)
	cfg.Sandbox.Runsc = "/no/runsc"
	open(t, cfg, nil).Executor.Warm(t.Context())
	g := open(t, withRunsc(t, settings(nil)), &gateway.Options{Logger: slog.New(log), NoPool: true})
	g.Executor.Warm(t.Context())
	execute(t, g, "python", "1")
	if waits(log, sandbox.Python) {
		t.Error("a sandbox waits where none is to")
	}
	closing := open(t, withRunsc(t, settings(nil)), nil)
	closing.Executor.Warm(t.Context())
	if err := closing.Close(); err != nil {
		t.Error(err)
	}
	closing.Executor.Warm(t.Context())
}
