package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/store"
)

// CopyRecords opens a temporary copy of the stored records, as a gateway may be writing to them, or connects to the servers that have them; nil if there are none. The caller calls done.
func (a *App) CopyRecords(ctx context.Context) (records *store.Store, done func() error, err error) {
	done = func() error { return nil }
	if cfg, err := a.Load(); err == nil && cfg.Store.IsRemote() {
		records, err = ConnectStore(cfg, a.Logger(slog.LevelError))
		if err != nil {
			return nil, done, err
		}
		return records, records.Close, nil
	}
	from := filepath.Join(a.DataDir(), RecordsFolder)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil, done, nil
	}
	scratch, err := os.MkdirTemp("", "sallyport-verify-")
	if err != nil {
		return nil, done, err
	}
	done = func() error { return os.RemoveAll(scratch) }
	copied := filepath.Join(scratch, RecordsFolder)
	if err := store.Copy(ctx, from, copied); err != nil {
		return nil, done, err
	}
	records, err = store.Open(copied, &store.Options{Logger: a.Logger(slog.LevelError)})
	if err != nil {
		return nil, done, err
	}
	return records, func() error { return errors.Join(records.Close(), os.RemoveAll(scratch)) }, nil
}

// SinkState describes whether a sink of the audit log takes records.
func SinkState(s audit.State) string {
	if s.Error == "" {
		return "ok"
	}
	return fmt.Sprintf("failing for %s", time.Since(s.Since).Round(time.Second))
}
