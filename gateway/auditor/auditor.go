// Package auditor writes the audit log of a gateway. Events are recorded before they take effect.
package auditor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Options are the dependencies of an [Auditor].
type Options struct {
	// DataDir is the directory of the log; "" disables it.
	DataDir string
	// Version and Purpose describe the process.
	Version, Purpose string
	// Records gets a copy of the log; nil for none. Durable says that records of executions outlive the process.
	Records *store.Store
	Durable bool
	// Settings are the settings in force. Reloading is held while they change.
	Settings  config.Source
	Reloading sync.Locker
	Logger    *slog.Logger
	// Meter estimates tokens.
	Meter *execution.Meter
	// Definition returns the digest of a tool's definition, "" for an unknown one.
	Definition func(id tool.ID) string
	// Redact removes personal data and secrets from a text.
	Redact func(text string) string
	// CountApproval counts approvals by their state.
	CountApproval func(ctx context.Context, state string)
}

// Auditor writes the audit log. It opens the log for the first event, and retries for each event while that
// fails. It is safe for concurrent use.
type Auditor struct {
	dir  string // "" if the log is disabled
	opts Options
	set  config.Audit // as the process was started
	log  audit.Options

	recorded settingsDigests // the settings that were recorded; guarded by opts.Reloading

	mu     sync.Mutex
	opened *audit.Log
	closed bool
	failed atomic.Bool // the last append

	verifying sync.Mutex // held by VerifyAudit
}

// New returns an auditor. It does not open the log yet.
func New(opts Options) (*Auditor, error) {
	cfg := opts.Settings.Load()
	a := &Auditor{opts: opts, set: cfg.Audit}
	switch {
	case cfg.Audit.Off:
	case opts.DataDir != "":
		a.dir = audit.Dir(opts.DataDir)
		a.log = LogOptions(cfg)
		a.log.Logger = opts.Logger
		a.log.Opened = audit.Event{Note: "sallyport " + opts.Version, By: opts.Purpose}
	case cfg.Audit.Required:
		return nil, &tool.Error{Kind: tool.Invalid, Message: "audit is enabled, and there is no data directory to put it in", Hint: "set HOME or XDG_DATA_HOME, or use --data DIR"}
	}
	return a, nil
}

// LogOptions returns the options of the log in the settings.
func LogOptions(cfg *config.Config) audit.Options {
	return audit.Options{Keep: cfg.Audit.Keep, Size: int64(cfg.Audit.Size)}
}

// openLog returns the log, which it opens on first use; nil if it is disabled.
func (a *Auditor) openLog() (*audit.Log, error) {
	if a == nil || a.dir == "" {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return a.opened, audit.ErrClosed
	}
	if a.opened != nil {
		return a.opened, nil
	}
	var err error
	a.opened, err = audit.Open(a.dir, &a.log)
	return a.opened, err
}

// append writes an event. If it returns an error, a *tool.Error, the event must not take effect.
func (a *Auditor) append(e audit.Event) error {
	l, err := a.openLog()
	if err == nil && l != nil {
		err = l.Append(e)
	}
	if errors.Is(err, audit.ErrClosed) {
		return toolcall.ClosedError()
	}
	if err == nil {
		if a != nil && a.failed.Swap(false) {
			a.opts.Logger.Info("audit records can be written again")
		}
		return nil
	}
	if !a.failed.Swap(true) {
		a.opts.Logger.Error("audit records cannot be written, so nothing is run", "directory", a.dir, "error", err)
	}
	return &tool.Error{Kind: tool.Internal, Message: "this cannot be put on record, so it is not done", Hint: "the operator's `sallyport doctor` says why", Err: err}
}

// digest returns a keyed digest of data that must not be in the log itself; "" without a log.
func (a *Auditor) digest(data []byte) string {
	l, err := a.openLog()
	if err != nil || l == nil {
		return ""
	}
	return l.Digest(data)
}

// Close closes the log. Later events are refused.
func (a *Auditor) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}
