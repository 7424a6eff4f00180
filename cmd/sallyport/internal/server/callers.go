package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/seal"
	"sallyport/internal/sharedrecords"
	"sallyport/internal/sleep"
	"sallyport/internal/store"
)

// callers are what authenticates the callers of a gateway, on each of its listeners.
type callers struct {
	tokens   *access.Tokens
	sessions *access.Sessions
	seal     *seal.Key    // nil: what is private stays with this gateway
	sealed   *store.Store // has what is private, nil without a key
	// subjects are the tokens with which people sign in.
	subjects *access.Subjects
}

// openCallers opens the tokens and sessions of a data directory, or those in a store that gateways share, nil for none.
func (a *app) openCallers(ctx context.Context, records *store.Store, log *slog.Logger) (c callers, err error) {
	in, err := cli.TokenPlace(a.DataDir(), records, log)
	if err != nil {
		return c, err
	}
	if records.Shared() && !a.moveTokens(ctx, in, log) {
		go func() {
			for sleep.For(ctx, moveInterval) == nil && !a.moveTokens(ctx, in, log) {
			}
		}()
	}
	c.tokens = access.OpenTokens(in, log)
	c.sessions, c.subjects = access.NewSessions(c.tokens), access.NewSubjects()
	if c.seal = records.Seal(); c.seal == nil {
		return c, nil
	}
	c.sealed = records
	shared, err := cli.SessionRecords(records)
	if err != nil {
		return c, err
	}
	c.sessions = access.NewSharedSessions(c.tokens, shared, log)
	subjects, err := cli.SubjectRecords(records)
	if err == nil {
		c.subjects.Share(subjects)
	}
	return c, err
}

// checkSeal checks the key of a store that gateways share, and seals again what an older key of the file has sealed. While the store does
// not answer it is tried again.
func checkSeal(ctx context.Context, records *store.Store, log *slog.Logger) {
	for {
		err := sharedrecords.CheckKey(ctx, records)
		if err == nil && records.Seal().HasOlder() {
			err = reseal(ctx, records, log)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case errors.Is(err, sharedrecords.ErrKey) || errors.Is(err, seal.ErrOtherKey):
			log.Error("logins and sessions in the store cannot be used", "error", err)
			return
		}
		log.Debug("the key of the store cannot be checked", "error", err)
		if sleep.For(ctx, moveInterval) != nil {
			return
		}
	}
}

func reseal(ctx context.Context, records *store.Store, log *slog.Logger) error {
	n, err := cli.Reseal(ctx, records)
	if err == nil {
		log.Info("all logins and sessions are sealed with the first key of store.key", "resealed", n)
	}
	return err
}

// moveInterval is the time between attempts to move tokens to a store that does not answer.
const moveInterval = 5 * time.Second

// moveTokens moves the tokens of the data directory to a shared store, and reports whether that is done or cannot be.
func (a *app) moveTokens(ctx context.Context, in access.Place, log *slog.Logger) (done bool) {
	err := access.MoveTokens(ctx, a.DataDir(), in, log)
	if err != nil && ctx.Err() == nil && !errors.Is(err, access.ErrUnavailable) {
		log.Error("the tokens of the data directory are not in the store", "error", err)
	}
	return !errors.Is(err, access.ErrUnavailable)
}

// front is what a gateway opens first: where it has records, who it accepts, and where it serves them.
type front struct {
	records  *store.Store // nil: in memory
	callers  callers
	listener *httpListener // nil: stdio
	serve    func(context.Context, *service) error
}

// open opens it. Records that gateways share come before the listener, as they have the tokens that it accepts; those of a data directory
// after it, as a wrong address must not delay another process that has them.
func (f *front) open(ctx context.Context, a *app, s serveOptions, cfg *config.Config, log *slog.Logger) (err error) {
	if cfg.Store.IsRemote() {
		if f.records, err = cli.ConnectStore(cfg, log); err != nil {
			return err
		}
	}
	if f.callers, err = a.openCallers(ctx, f.records, log); err != nil {
		return err
	}
	if f.serve, f.listener, err = a.listenerFor(ctx, s, cfg, f.callers, log); err != nil || f.records != nil {
		return err
	}
	f.records, err = a.OpenRecords(cfg, log, s.share)
	return err
}

// close closes what was opened, also if serving has not begun.
func (f *front) close() error {
	f.listener.close()
	if f.records == nil {
		return nil
	}
	return f.records.Close()
}
