package cli

import (
	"context"
	"errors"
	"log/slog"

	"sallyport/internal/access"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
)

// TokenPlace returns where the tokens of sallyport token are: in a store that gateways share, else in the data directory; nil for none.
func TokenPlace(dataDir string, records *store.Store, log *slog.Logger) (access.Place, error) {
	if !records.Shared() {
		return access.InFolder(dataDir, log), nil
	}
	in, err := sharedrecords.Open(records, "tokens", store.Limits{Records: 100, Bytes: 16 << 20, Keep: true})
	if err != nil {
		return nil, err
	}
	return access.InRecords(in), nil
}

// UseTokens calls use with the place of the tokens of sallyport token. Without settings it is the data directory.
func UseTokens(ctx context.Context, a *App, use func(ctx context.Context, in access.Place) error) (err error) {
	dir, err := a.NeedDataDir()
	if err != nil {
		return err
	}
	log := a.Logger(slog.LevelError)
	var records *store.Store
	if cfg, err := a.Load(); err == nil && cfg.Store.IsRemote() {
		if records, err = ConnectStore(cfg, log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, records.Close()) }()
	}
	in, err := TokenPlace(dir, records, log)
	if err != nil {
		return err
	}
	return use(ctx, in)
}
