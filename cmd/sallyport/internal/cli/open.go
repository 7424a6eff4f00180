package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/connections"
	"sallyport/gateway/trust"
	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/config"
	"sallyport/internal/natsconn"
	"sallyport/internal/seal"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// OpenGateway opens a gateway with opts and the options that are the same for all verbs.
func (a *App) OpenGateway(cfg *config.Config, log *slog.Logger, opts gateway.Options) (*gateway.Gateway, error) {
	opts.Logger, opts.Version, opts.CacheDir, opts.DataDir = log, BuildVersion(), a.CacheDir(), a.DataDir()
	opts.LockFile = filepath.Join(cfg.Dir, trust.FileName)
	ShareLogins(a, cfg, opts.Records)
	opts.Auth = func(up config.Upstream) upstream.Authorizer {
		if CheckLogin(up) != nil {
			return nil
		}
		return a.NewAuthorizer(up, "", "", nil)
	}
	opts.PersonAuth = func(up config.Upstream, principal string) oauth.Authorizer {
		page := ""
		if principal != "" {
			page = connections.Page(opts.Site, up.ID)
		}
		return a.NewAuthorizer(up, principal, page, opts.Subjects)
	}
	opts.ManagedSecrets = managedSecrets(a)
	opts.Purpose = cmp.Or(opts.Purpose, "cli")
	go sweep(log)
	return gateway.Open(cfg, &opts)
}

// sweep removes cgroups and sandbox files that killed gateways of this user left behind. If the process ends first, the next one
// removes the rest.
func sweep(log *slog.Logger) {
	if err := sandbox.Sweep("", log); err != nil {
		log.Debug("files of killed gateways were not removed", "error", err)
	}
}

// WithGateway opens a gateway, calls use with it and closes it.
func (a *App) WithGateway(ctx context.Context, opts gateway.Options, use func(ctx context.Context, g *gateway.Gateway) error) (err error) {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	g, err := a.OpenGateway(cfg, a.Logger(slog.LevelError), opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return use(tool.WithClient(ctx, "sallyport "+cmp.Or(opts.Purpose, "cli")), g)
}

// RecordsTimeout is how long serve waits for the records while another process closes them, as clients start a new process before the old
// one has ended, and how long other verbs wait for each other.
const RecordsTimeout = 3 * time.Second

// shareTimeout bounds the wait for the records by a verb that can do without them.
const shareTimeout = 300 * time.Millisecond

// OpenRecords opens the stored records for serve. It returns nil if records are kept in memory only. One process has
// the store at a time; with share, the others keep their records in memory.
func (a *App) OpenRecords(cfg *config.Config, log *slog.Logger, share bool) (*store.Store, error) {
	if cfg.Store.IsRemote() {
		return ConnectStore(cfg, log)
	}
	dir := a.DataDir()
	if dir == "" {
		return nil, nil
	}
	patience := RecordsTimeout
	if share {
		patience = shareTimeout
	}
	records, err := store.Open(filepath.Join(dir, RecordsFolder), &store.Options{Logger: log, LockTimeout: patience})
	if errors.Is(err, store.ErrInUse) && !share && requestRelease(context.Background(), a) {
		records, err = store.Open(filepath.Join(dir, RecordsFolder), &store.Options{Logger: log, LockTimeout: releaseTimeout})
	}
	if used, ok := errors.AsType[*store.InUseError](err); ok {
		if share {
			log.Warn("another sallyport process has the records: this one keeps its own in memory, and takes over the records and schedules when that one ends", "directory", dir, "process", used.PID)
			return nil, nil
		}
		by := "another sallyport process"
		if used.PID > 0 {
			by += fmt.Sprintf(" (%d)", used.PID)
		}
		return nil, &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("the data directory %s is in use by %s", dir, by), Err: err,
			Hint: "for several clients start one with serve --http and connect them to it, or each with serve --share; --data DIR is for a directory of its own"}
	}
	if errors.Is(err, store.ErrNewer) || errors.Is(err, store.ErrCorrupt) {
		return nil, err
	}
	if err != nil {
		log.Error("records are kept in memory only", "error", err)
		return nil, nil
	}
	return records, nil
}

// ConnectStore returns the records on the servers of the settings.
func ConnectStore(cfg *config.Config, log *slog.Logger) (*store.Store, error) {
	set := cfg.Store
	if set.Problem != "" {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "the store cannot be used: " + set.Problem}
	}
	key, err := sealKey(cfg)
	if err != nil {
		return nil, err
	}
	records, err := store.Connect(store.Remote{Server: natsconn.Of(set, "sallyport "+BuildVersion()), Replicas: set.Replicas, Prefix: set.Prefix, Seal: key, Logger: log})
	if errors.Is(err, store.ErrRefused) {
		return nil, &tool.Error{Kind: tool.Failed, Message: err.Error(), Hint: "see the section store of " + cfg.Path + "; docs/how-to/share-a-store.md has the servers' configuration", Err: err}
	}
	return records, err
}

// sealKey returns the key of store.key, nil without one.
func sealKey(cfg *config.Config) (*seal.Key, error) {
	if cfg.Store.Key == "" {
		return nil, nil
	}
	key, err := seal.File(cfg.Store.Key)
	if err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: "store.key cannot be used: " + err.Error(), Hint: "each gateway needs a copy of the same file: see docs/how-to/share-a-store.md", Err: err}
	}
	return key, nil
}

// DataDir returns the directory of persistent data, "" if there is none.
func (a *App) DataDir() string {
	if dir, err := filepath.Abs(a.DataPath); a.DataPath != "" && err == nil {
		return dir
	}
	if dir, ok := a.Env("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "sallyport")
	}
	if home, ok := a.Env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "sallyport")
	}
	return ""
}

// NewerFix is what to do about a data directory that a newer version wrote.
const NewerFix = "install the release of sallyport that wrote them, or a later one; --data DIR is for a directory of its own"

// CheckDataVersion returns an error if a newer version of sallyport wrote the data directory.
func (a *App) CheckDataVersion() error {
	dir := a.DataDir()
	if dir == "" {
		return nil
	}
	if _, _, err := store.Version(filepath.Join(dir, RecordsFolder)); errors.Is(err, store.ErrNewer) {
		return &tool.Error{Kind: tool.Failed, Message: err.Error(), Hint: NewerFix, Err: err}
	}
	return nil // what else is wrong is the error of the command that opens the records
}

// CacheDir returns the directory of caches, "" if there is none.
func (a *App) CacheDir() string {
	if dir, ok := a.Env("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "sallyport")
	}
	if home, ok := a.Env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "sallyport")
	}
	return ""
}
