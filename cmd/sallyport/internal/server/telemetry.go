package server

import (
	"context"
	"log/slog"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/telemetry"
)

// lastSend is how long what is measured and not yet sent may take when serve ends.
const lastSend = 3 * time.Second

// openTelemetry begins to measure, and to send what the settings or OTEL_ variables say.
func (a *app) openTelemetry(ctx context.Context, cfg *config.Config, log *slog.Logger) (*telemetry.Telemetry, error) {
	if why := cfg.Telemetry.Problem; why != "" {
		log.Warn("telemetry is not sent", "error", why)
	}
	return telemetry.Open(ctx, telemetry.Options{Settings: cfg.Telemetry, Version: cli.BuildVersion(), Env: a.Env, Logger: log})
}

// closeTelemetry sends what is left.
func closeTelemetry(t *telemetry.Telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), lastSend)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Debug("telemetry is not closed", "error", err)
	}
}
