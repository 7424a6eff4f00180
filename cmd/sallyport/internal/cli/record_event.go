package cli

import (
	"errors"
	"log/slog"

	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
	"sallyport/internal/config"
)

// RecordEvents appends audit events for an action at the command line. It is called before the action. It does nothing without a
// data directory, or if the settings turn the audit record off.
func (a *App) RecordEvents(events ...audit.Event) (err error) {
	standard := config.Default()
	cfg := &standard
	if read, err := a.ReadSettings(); err == nil {
		cfg = read
	}
	if cfg.Audit.Off || a.DataDir() == "" {
		return nil
	}
	opts := auditor.LogOptions(cfg)
	opts.Logger, opts.Opened = a.Logger(slog.LevelError), audit.Event{Note: "sallyport " + BuildVersion(), By: OperatorName}
	l, err := audit.Open(audit.Dir(a.DataDir()), &opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, e := range events {
		e.By = OperatorName
		if err := l.Append(e); err != nil {
			return err
		}
	}
	return nil
}
