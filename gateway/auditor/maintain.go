package auditor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/sleep"
)

const (
	// pruneEvery is the interval at which old records are removed.
	pruneEvery = time.Hour
	// auditRetry is the time until a failed open is retried.
	auditRetry = 5 * time.Second
)

// MaintainAudit maintains the audit log until ctx ends: it records the settings in force, removes old records, copies records
// to the store, and sends them to the sinks. It is for a gateway that serves.
func (a *Auditor) MaintainAudit(ctx context.Context) {
	l, err := a.openLog()
	for l == nil {
		if err == nil {
			return // the log is disabled
		}
		if errors.Is(err, audit.ErrClosed) {
			return
		}
		a.opts.Logger.ErrorContext(ctx, "audit records cannot be written, so nothing is run", "directory", a.dir, "error", err)
		if sleep.For(ctx, auditRetry) != nil {
			return
		}
		l, err = a.openLog()
	}
	sinks, err := audit.NewSinks(a.set.Sinks, a.opts.Version)
	if err != nil {
		a.opts.Logger.ErrorContext(ctx, "audit records go to no sink", "error", err)
	}
	var work sync.WaitGroup
	defer work.Wait()
	if a.opts.Records != nil {
		work.Go(func() { a.mirror(ctx, l) })
	}
	if len(sinks) > 0 {
		work.Go(func() {
			if err := l.Deliver(ctx, sinks); err != nil {
				a.opts.Logger.ErrorContext(ctx, "audit records go to no sink", "error", err)
			}
		})
	}
	a.opts.Reloading.Lock()
	_ = a.recordSettings(a.opts.Settings.Load()) // append logs the error, and nothing runs
	a.opts.Reloading.Unlock()
	for ok := true; ok; ok = sleep.For(ctx, pruneEvery) == nil {
		if err := l.Prune(); err != nil {
			a.opts.Logger.ErrorContext(ctx, "old audit records stay", "error", err)
		}
	}
}

// mirror copies the log to the store, and retries when that fails.
func (a *Auditor) mirror(ctx context.Context, l *audit.Log) {
	copied, err := a.copyInStore()
	if err != nil {
		a.opts.Logger.ErrorContext(ctx, "audit records are not copied", "error", err)
		return
	}
	for {
		err := l.Mirror(ctx, copied)
		if ctx.Err() != nil {
			return
		}
		a.opts.Logger.ErrorContext(ctx, "audit records are not copied", "error", err)
		if sleep.For(ctx, time.Minute) != nil {
			return
		}
	}
}

// copyInStore returns the copy of the log in the store.
func (a *Auditor) copyInStore() (*audit.Mirror, error) {
	chain, err := audit.Chain(a.dir)
	if err != nil {
		return nil, err
	}
	return audit.NewMirror(a.opts.Records, chain, a.set.Keep, int64(a.set.Size))
}

// RecordReload records other settings before they take effect.
func (a *Auditor) RecordReload(cfg *config.Config) error {
	if a.recorded.settings == "" { // MaintainAudit does not run
		return nil
	}
	return a.recordSettings(cfg)
}

// recordSettings records the settings in force, if they have changed. opts.Reloading must be held.
func (a *Auditor) recordSettings(cfg *config.Config) error {
	if !a.enabled() {
		return nil
	}
	var all bytes.Buffer
	for _, path := range append([]string{cfg.Path}, cfg.Files...) {
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error())
		}
		all.WriteString(path + "\x00" + string(data) + "\x00")
	}
	now := a.digest(all.Bytes())
	if now == "" || now == a.recorded.settings {
		return nil
	}
	if err := a.append(audit.Event{Kind: audit.SettingsChanged, By: "file", Before: a.recorded.settings, After: now}); err != nil {
		return err
	}
	a.recorded.settings = now
	rules, err := json.Marshal(struct {
		Policy policy.Settings
		Labels []upstreamLabels
	}{cfg.Policy, labels(cfg)})
	if err != nil {
		return fmt.Errorf("digest policy: %w", err)
	}
	if now = a.digest(rules); now == a.recorded.policy {
		return nil
	}
	if err := a.append(audit.Event{Kind: audit.PolicyChanged, By: "file", Before: a.recorded.policy, After: now, Note: fmt.Sprintf("%d rules", len(cfg.Policy.Rules))}); err != nil {
		return err
	}
	a.recorded.policy = now
	return nil
}

// upstreamLabels is an upstream with its labels in the settings.
type upstreamLabels struct {
	Upstream string
	Labels   []string
	Tools    map[string][]string
}

func labels(cfg *config.Config) (all []upstreamLabels) {
	for _, up := range cfg.Upstreams {
		all = append(all, upstreamLabels{up.ID, up.Labels, up.ToolLabels})
	}
	return all
}

// settingsDigests are digests of the settings that were recorded last.
type settingsDigests struct{ settings, policy string }
