package auditor

import (
	"context"

	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// VerifyAudit reads the whole audit log, follows its hashes, and compares it with the copy in the store, if there is one. It is for
// operators, and runs once at a time. Errors are *tool.Error.
func (a *Auditor) VerifyAudit(ctx context.Context) (audit.Report, error) {
	if tool.Operator(ctx) == "" {
		return audit.Report{}, toolcall.OperatorsOnly("the audit log")
	}
	l, err := a.openLog()
	if err != nil {
		return audit.Report{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
	}
	if l == nil {
		return audit.Report{}, noLog()
	}
	if !a.verifying.TryLock() {
		return audit.Report{}, busy()
	}
	defer a.verifying.Unlock()
	checks, err := a.checks(ctx)
	if err != nil {
		return audit.Report{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
	}
	report, err := audit.Verify(a.dir, checks)
	if err != nil {
		return audit.Report{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
	}
	return report, nil
}

// VerifyChains verifies the copies of the logs of all gateways that share the store, each by itself; none without such a store. It is
// for operators, and runs once at a time. Errors are *tool.Error.
func (a *Auditor) VerifyChains(ctx context.Context) ([]audit.Verified, error) {
	if tool.Operator(ctx) == "" {
		return nil, toolcall.OperatorsOnly("the audit log")
	}
	if !a.opts.Records.Shared() {
		return nil, nil
	}
	if !a.verifying.TryLock() {
		return nil, busy()
	}
	defer a.verifying.Unlock()
	chains, err := audit.Copies(ctx, a.opts.Records, a.set.Keep)
	var all []audit.Verified
	if err == nil {
		all, err = audit.VerifyCopies(ctx, a.opts.Records, chains)
	}
	if err != nil {
		return nil, toolcall.Unreadable(ctx, a.opts.Logger, err)
	}
	return all, nil
}

// busy is the error while another verification runs.
func busy() error {
	return &tool.Error{Kind: tool.Busy, Message: "the audit log is being verified already", Hint: "try again in some seconds", Retryable: true}
}

// checks returns what the log is compared with: its copy in the store.
func (a *Auditor) checks(ctx context.Context) (*audit.Checks, error) {
	if a.opts.Records == nil {
		return nil, nil
	}
	mirror, err := a.copyInStore()
	if err != nil {
		return nil, err
	}
	return &audit.Checks{Mirror: mirror.Lines(ctx)}, nil
}

// noLog is the error if there is no audit log.
func noLog() error {
	return &tool.Error{Kind: tool.NotFound, Message: "there is no audit log", Hint: "it is off in upstreams.yaml (audit), or there is no data directory"}
}
