package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

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
	in, err := loginRecords(records)
	if in == nil {
		return nil, errors.Join(errors.New("the store has no key for logins"), err)
	}
	return in, err
}

func loginRecords(records *store.Store) (*sharedrecords.Records, error) {
	return sharedrecords.OpenSealed(records, "logins", store.Limits{Records: 100_000, Bytes: 256 << 20, Record: 256 << 10, Keep: true})
}

// sessionAge is how long the record of a session stays in the store after its last use; sessions end earlier.
const sessionAge = 8 * 24 * time.Hour

// SessionRecords returns the browser sessions in a store that gateways share, nil without a key.
func SessionRecords(records *store.Store) (*sharedrecords.Records, error) {
	return sharedrecords.OpenSealed(records, "sessions", store.Limits{Age: sessionAge, Record: 64 << 10})
}

// SubjectRecords returns the tokens with which people sign in, in a store that gateways share, nil without a key.
func SubjectRecords(records *store.Store) (*sharedrecords.Records, error) {
	return sharedrecords.OpenSealed(records, "subjects", store.Limits{Age: sessionAge, Records: 20_000, Record: 256 << 10})
}

// Reseal seals logins and sessions that are sealed with an older key of the store with the first one, and returns their number.
func Reseal(ctx context.Context, records *store.Store) (n int, err error) {
	for _, open := range []func(*store.Store) (*sharedrecords.Records, error){loginRecords, SessionRecords, SubjectRecords} {
		in, err := open(records)
		if in == nil || err != nil {
			return n, err
		}
		more, err := in.Reseal(ctx)
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}
