package cli

import (
	"errors"
	"log/slog"
	"sync"

	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/config"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/store"
)

// logins are the logins that gateways share.
type logins struct {
	mu   sync.Mutex
	open func() (oauth.Records, error) // nil: they stay on this machine
}

// ShareLogins makes the logins of [App.NewAuthorizer] those in the store of the settings, if they have a key; without records, it connects
// to the store when a login is needed first.
func ShareLogins(a *App, cfg *config.Config, records *store.Store) {
	a.logins.mu.Lock()
	defer a.logins.mu.Unlock()
	switch {
	case !cfg.Store.IsRemote() || cfg.Store.Key == "":
		a.logins.open = nil
	case records.Shared():
		a.logins.open = sync.OnceValues(func() (oauth.Records, error) { return openLogins(records) })
	default:
		log := a.Logger(slog.LevelError)
		a.logins.open = sync.OnceValues(func() (oauth.Records, error) {
			records, err := ConnectStore(cfg, log) // until the command ends
			if err != nil {
				return nil, err
			}
			return openLogins(records)
		})
	}
}

func (l *logins) records() func() (oauth.Records, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

func openLogins(records *store.Store) (oauth.Records, error) {
	in, err := sharedrecords.OpenSealed(records, "logins", store.Limits{Records: 100_000, Bytes: 256 << 20, Record: 256 << 10, Keep: true})
	if in == nil {
		return nil, errors.Join(errors.New("the store has no key for logins"), err)
	}
	return in, err
}
