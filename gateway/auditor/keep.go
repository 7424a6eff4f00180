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
	// pruneEvery is how often records are looked for that are too old.
	pruneEvery = time.Hour
	// auditRetry is how long it takes until a record is tried again that could not be opened.
	auditRetry = 5 * time.Second
)

// KeepAudit looks after the audit record until ctx ends: it puts on record which settings are in force, lets old records go,
// copies them to the store, and sends them to the sinks. It is for a gateway that serves.
func (a *Auditor) KeepAudit(ctx context.Context) {
	l, err := a.get()
	for l == nil {
		if err == nil {
			return // nothing is recorded
		}
		if errors.Is(err, audit.ErrClosed) {
			return
		}
		a.opts.Logger.ErrorContext(ctx, "audit records cannot be written, so nothing is run", "directory", a.dir, "error", err)
		if sleep.For(ctx, auditRetry) != nil {
			return
		}
		l, err = a.get()
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
	_ = a.settings(a.opts.Settings.Load()) // it is logged, and nothing runs
	a.opts.Reloading.Unlock()
	for ok := true; ok; ok = sleep.For(ctx, pruneEvery) == nil {
		if err := l.Prune(); err != nil {
			a.opts.Logger.ErrorContext(ctx, "old audit records stay", "error", err)
		}
	}
}

// mirror copies the record to the store, and tries again when that fails.
func (a *Auditor) mirror(ctx context.Context, l *audit.Log) {
	set := a.set
	copied, err := audit.NewMirror(a.opts.Records, set.Keep, int64(set.Size))
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

// RecordReload puts other settings on record before they come into force.
func (a *Auditor) RecordReload(cfg *config.Config) error {
	if a.inForce.settings == "" { // nobody keeps the record
		return nil
	}
	return a.settings(cfg)
}

// settings puts on record which settings are in force, if they are others than before. It is called with reloading held.
func (a *Auditor) settings(cfg *config.Config) error {
	if !a.kept() {
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
	if now == "" || now == a.inForce.settings {
		return nil
	}
	if err := a.append(audit.Event{Kind: audit.SettingsChanged, By: "file", Before: a.inForce.settings, After: now}); err != nil {
		return err
	}
	a.inForce.settings = now
	rules, err := json.Marshal(struct {
		Policy policy.Settings
		Labels []labelled
	}{cfg.Policy, labels(cfg)})
	if err != nil {
		return fmt.Errorf("digest policy: %w", err)
	}
	if now = a.digest(rules); now == a.inForce.policy {
		return nil
	}
	if err := a.append(audit.Event{Kind: audit.PolicyChanged, By: "file", Before: a.inForce.policy, After: now, Note: fmt.Sprintf("%d rules", len(cfg.Policy.Rules))}); err != nil {
		return err
	}
	a.inForce.policy = now
	return nil
}

// labelled is an upstream, and what the settings say of where its data comes from and goes to.
type labelled struct {
	Upstream string
	Labels   []string
	Tools    map[string][]string
}

func labels(cfg *config.Config) (all []labelled) {
	for _, up := range cfg.Upstreams {
		all = append(all, labelled{up.ID, up.Labels, up.ToolLabels})
	}
	return all
}

// inForce are digests of the settings that are on record.
type inForce struct{ settings, policy string }
