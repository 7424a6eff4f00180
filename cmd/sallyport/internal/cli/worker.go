package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/machine"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// Worker connects to the worker on a machine as a gateway would, and returns its version, its checks and the time to connect.
func (a *App) Worker(ctx context.Context, at string) (version string, found []sandbox.Check, took time.Duration, err error) {
	address, err := machine.Parse(at)
	if err != nil {
		return "", nil, 0, err
	}
	client, err := remote.New(remote.To(address), &remote.Options{Version: BuildVersion(), Guest: runtime.Guest(), Name: at, Logger: a.Logger(slog.LevelError)})
	if err != nil {
		return "", nil, 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	start := time.Now()
	if version, err = client.WorkerVersion(ctx); err != nil {
		return "", nil, 0, err
	}
	took = time.Since(start)
	found, err = client.Checks(ctx)
	return version, found, took, err
}
