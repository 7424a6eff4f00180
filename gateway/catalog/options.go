package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/budget"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/redact"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Options configure a catalog. All but Auth, OnNotice, CacheDir, LockFile and Records are required.
type Options struct {
	Settings config.Source
	Logger   *slog.Logger
	// Version is the gateway's, as upstreams see it.
	Version string
	// ConnectWait is how long after the start, or a change of the settings, callers wait for upstreams that connect for the first time.
	ConnectWait time.Duration
	// CacheDir stores the upstreams' offers between runs; "" stores none.
	CacheDir string
	// Records has what several gateways learn and decide together, if they share it.
	Records *store.Store
	// Fresh connects to every upstream at once, also to those in the cache.
	Fresh bool
	// LockFile is where digests of tool definitions are pinned; "" pins nothing.
	LockFile string
	// Auth makes the authorizer of an upstream over HTTP, nil if it needs none. A nil Auth means that none needs one.
	Auth func(up config.Upstream) upstream.Authorizer
	// PersonAuth makes the authorizer of a principal at an upstream with auth.per: principal. Login waits until the caller
	// has logged in there after a time. With nil, all principals share one login.
	PersonAuth func(up config.Upstream, principal string) upstream.Authorizer
	Login      func(ctx context.Context, up config.Upstream, call tool.Call, after time.Time) error
	// Asks says that calls may have a [tool.Peer] that answers requests, NoRoots that no such peer lists roots.
	Asks, NoRoots bool
	// OnNotice gets notifications of the upstream with the id outside of any call. It must not block. Nil ignores them.
	OnNotice func(id, method string, params json.RawMessage)
	// Isolate starts upstreams with the key isolate in sandboxes; nil refuses to start them.
	Isolate upstream.Isolate
	// Single is for upstreams that run once for all gateways of a store; nil runs them here.
	Single upstream.Single
	// Budget bounds the memory of the large messages of all upstreams.
	Budget *budget.Budget
	// Renew returns the settings of an upstream with the secrets that are valid now; nil leaves them unchanged.
	Renew func(ctx context.Context, up config.Upstream) (config.Upstream, error)
	// Secrets are removed from logs; tokens of upstreams are added to them.
	Secrets *redact.Book
	// Publish gets the files of the servers/ tree after each change.
	Publish func(files func() map[string][]byte) error
	// Restore returns the arguments of a call with tokens replaced by values.
	Restore func(ctx context.Context, call tool.Call) (json.RawMessage, error)
	// Audit records an event in the audit log.
	Audit func(ctx context.Context, event audit.Event) error
}
