// Package auditor puts on record what happens in a gateway, before it counts.
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

// Options say what the audit record is made with.
type Options struct {
	// DataDir holds the record; "" keeps none.
	DataDir string
	// Version and Purpose are of the process.
	Version, Purpose string
	// Records gets a copy; nil for none. Durable says that records of executions outlive the process.
	Records *store.Store
	Durable bool
	// Settings are the settings in force. Reloading is held while they change.
	Settings  config.Source
	Reloading sync.Locker
	Logger    *slog.Logger
	// Meter estimates tokens.
	Meter *execution.Meter
	// Definition returns the digest of a tool's definition, "" for one that is not known.
	Definition func(id tool.ID) string
	// Redact removes personal data and secrets from a text.
	Redact func(text string) string
	// Asked counts questions to people by their state.
	Asked func(ctx context.Context, state string)
}

// Auditor keeps the audit record. It is opened when something is first put on record, and tried again at
// each call while that fails. It is safe for concurrent use.
type Auditor struct {
	dir  string // "": nothing is put on record
	opts Options
	set  config.Audit // as the process was started
	log  audit.Options

	inForce inForce // what is on record of the settings; opts.Reloading guards it

	mu     sync.Mutex
	opened *audit.Log
	ended  bool
	failed atomic.Bool // the last append
}

// New opens nothing yet.
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

// LogOptions are those of a log that the settings describe.
func LogOptions(cfg *config.Config) audit.Options {
	return audit.Options{Keep: cfg.Audit.Keep, Size: int64(cfg.Audit.Size)}
}

// get returns the log, nil where there is none to be kept.
func (a *Auditor) get() (*audit.Log, error) {
	if a == nil || a.dir == "" {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return a.opened, audit.ErrClosed
	}
	if a.opened != nil {
		return a.opened, nil
	}
	var err error
	a.opened, err = audit.Open(a.dir, &a.log)
	return a.opened, err
}

// append puts an event on record. The error is a *tool.Error, and says that nothing may be done.
func (a *Auditor) append(e audit.Event) error {
	l, err := a.get()
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

// digest is a keyed digest of what must not be on record; "" where there is no record.
func (a *Auditor) digest(data []byte) string {
	l, err := a.get()
	if err != nil || l == nil {
		return ""
	}
	return l.Digest(data)
}

// Close closes the record. Later events are refused.
func (a *Auditor) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}
