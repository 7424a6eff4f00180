package server

import (
	"context"
	"log/slog"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/telemetry"
)

// flushTimeout bounds sending the remaining telemetry when serve ends.
const flushTimeout = 3 * time.Second

// openTelemetry starts telemetry with the exporters of the settings or the OTEL_ variables.
func (a *app) openTelemetry(ctx context.Context, cfg *config.Config, log *slog.Logger) (*telemetry.Telemetry, error) {
	if why := cfg.Telemetry.Problem; why != "" {
		log.Warn("telemetry is not sent", "error", why)
	}
	return telemetry.Open(ctx, telemetry.Options{Settings: cfg.Telemetry, Version: cli.BuildVersion(), Env: a.Env, Logger: log})
}

// closeTelemetry sends the remaining telemetry.
func closeTelemetry(t *telemetry.Telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Debug("cannot close telemetry", "error", err)
	}
}
