package doctorcmd

import (
	"context"
	"fmt"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/executor"
	"sallyport/gateway/typecheck"
	"sallyport/internal/config"
	"sallyport/internal/natsconn"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
	"sallyport/sandbox/workers"
)

// checkWorkers checks that there are workers to run programs.
func checkWorkers(ctx context.Context, cfg *config.Config) sandbox.Check {
	check := sandbox.Check{Name: "workers", Fix: "start one on a Linux machine: sallyport worker --join URL --creds FILE (docs/how-to/workers.md)"}
	found, err := workers.List(ctx, natsconn.Of(cfg.Store, "sallyport "+cli.BuildVersion()), cfg.Store.Prefix, 1500*time.Millisecond)
	seats, ready, busy := 0, 0, 0
	for _, w := range found {
		if !w.Draining {
			seats, ready, busy = seats+w.Seats, ready+1, busy+w.Busy
		}
	}
	switch {
	case err != nil:
		check.Detail = sanitize.Line(err.Error(), 400)
	case ready == 0:
		check.Detail = "no worker has joined that takes programs"
	default:
		check.OK, check.Detail = true, fmt.Sprintf("%s with %s, %d busy; %s", cli.Count(ready, "worker"), cli.Count(seats, "seat"), busy, checkersOf(found))
	}
	return check
}

// checkersOf says how many workers check the types of programs.
func checkersOf(found []workers.Worker) string {
	count := func(language typecheck.Language) (n int) {
		for _, w := range found {
			if !w.Draining && remote.Here().HasService(w.Speaks, w.Services, executor.CheckerName(language)) {
				n++
			}
		}
		return n
	}
	return fmt.Sprintf("types of python are checked on %d, of typescript on %d", count(typecheck.Python), count(typecheck.TypeScript))
}
