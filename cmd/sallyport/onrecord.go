package main

import (
	"errors"
	"log/slog"

	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
	"sallyport/internal/config"
)

// onRecord puts on record what a person did at the command line, before it is done. Without a data directory, or where the
// settings want no record, it does nothing.
func (a *app) onRecord(events ...audit.Event) (err error) {
	standard := config.Default()
	cfg := &standard
	if read, err := a.glance(); err == nil {
		cfg = read
	}
	if cfg.Audit.Off || a.dataDir() == "" {
		return nil
	}
	opts := auditor.LogOptions(cfg)
	opts.Logger, opts.Opened = a.logger(slog.LevelError), audit.Event{Note: "sallyport " + buildVersion(), By: operatorName}
	l, err := audit.Open(audit.Dir(a.dataDir()), &opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, e := range events {
		e.By = operatorName
		if err := l.Append(e); err != nil {
			return err
		}
	}
	return nil
}
