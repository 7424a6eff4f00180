package gateway

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// auditor keeps the audit record. It is opened when something is first put on record, and tried again at
// each call while that fails. Its zero value keeps none.
type auditor struct {
	dir  string // "": nothing is put on record
	opts audit.Options
	slog *slog.Logger

	mu     sync.Mutex
	opened *audit.Log
	ended  bool
	failed atomic.Bool // the last append
}

// newAuditor opens nothing yet.
func newAuditor(cfg *config.Config, opts Options) (*auditor, error) {
	a := &auditor{slog: opts.Logger}
	switch set := cfg.Audit; {
	case set.Off:
	case opts.DataDir != "":
		a.dir = audit.Dir(opts.DataDir)
		a.opts = AuditOptions(cfg)
		a.opts.Logger = opts.Logger
		a.opts.Opened = audit.Event{Note: "sallyport " + opts.Version, By: opts.Purpose}
	case set.Required:
		return nil, &tool.Error{Kind: tool.Invalid, Message: "audit is enabled, and there is no data directory to put it in", Hint: "set HOME or XDG_DATA_HOME, or use --data DIR"}
	}
	return a, nil
}

// AuditOptions are those of a log that the settings describe.
func AuditOptions(cfg *config.Config) audit.Options {
	return audit.Options{Keep: cfg.Audit.Keep, Size: int64(cfg.Audit.Size)}
}

// get returns the log, nil where there is none to be kept.
func (a *auditor) get() (*audit.Log, error) {
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
	a.opened, err = audit.Open(a.dir, &a.opts)
	return a.opened, err
}

// append puts an event on record. The error is a *tool.Error, and says that nothing may be done.
func (a *auditor) append(e audit.Event) error {
	l, err := a.get()
	if err == nil && l != nil {
		err = l.Append(e)
	}
	if errors.Is(err, audit.ErrClosed) {
		return toolcall.ClosedError()
	}
	if err == nil {
		if a != nil && a.failed.Swap(false) {
			a.slog.Info("audit records can be written again")
		}
		return nil
	}
	if !a.failed.Swap(true) {
		a.slog.Error("audit records cannot be written, so nothing is run", "directory", a.dir, "error", err)
	}
	return &tool.Error{Kind: tool.Internal, Message: "this cannot be put on record, so it is not done", Hint: "the operator's `sallyport doctor` says why", Err: err}
}

// digest is a keyed digest of what must not be on record; "" where there is no record.
func (a *auditor) digest(data []byte) string {
	l, err := a.get()
	if err != nil || l == nil {
		return ""
	}
	return l.Digest(data)
}

func (a *auditor) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.opened == nil {
		return nil
	}
	return a.opened.Close()
}
