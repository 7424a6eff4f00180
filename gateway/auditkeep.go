package gateway

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
func (g *Gateway) KeepAudit(ctx context.Context) {
	l, err := g.auditor.get()
	for l == nil {
		if err == nil {
			return // nothing is recorded
		}
		if errors.Is(err, audit.ErrClosed) {
			return
		}
		g.log.ErrorContext(ctx, "audit records cannot be written, so nothing is run", "directory", g.auditor.dir, "error", err)
		if sleep.For(ctx, auditRetry) != nil {
			return
		}
		l, err = g.auditor.get()
	}
	sinks, err := audit.NewSinks(g.started.Audit.Sinks, g.opts.Version)
	if err != nil {
		g.log.ErrorContext(ctx, "audit records go to no sink", "error", err)
	}
	var work sync.WaitGroup
	defer work.Wait()
	if g.opts.Records != nil {
		work.Go(func() { g.mirror(ctx, l) })
	}
	if len(sinks) > 0 {
		work.Go(func() {
			if err := l.Deliver(ctx, sinks); err != nil {
				g.log.ErrorContext(ctx, "audit records go to no sink", "error", err)
			}
		})
	}
	g.reloading.Lock()
	_ = g.auditSettings(g.cfg.Load()) // it is logged, and nothing runs
	g.reloading.Unlock()
	for ok := true; ok; ok = sleep.For(ctx, pruneEvery) == nil {
		if err := l.Prune(); err != nil {
			g.log.ErrorContext(ctx, "old audit records stay", "error", err)
		}
	}
}

// mirror copies the record to the store, and tries again when that fails.
func (g *Gateway) mirror(ctx context.Context, l *audit.Log) {
	set := g.started.Audit
	copied, err := audit.NewMirror(g.opts.Records, set.Keep, int64(set.Size))
	if err != nil {
		g.log.ErrorContext(ctx, "audit records are not copied", "error", err)
		return
	}
	for {
		err := l.Mirror(ctx, copied)
		if ctx.Err() != nil {
			return
		}
		g.log.ErrorContext(ctx, "audit records are not copied", "error", err)
		if sleep.For(ctx, time.Minute) != nil {
			return
		}
	}
}

// auditReload puts other settings on record before they come into force.
func (g *Gateway) auditReload(cfg *config.Config) error {
	if g.inForce.settings == "" { // nobody keeps the record
		return nil
	}
	return g.auditSettings(cfg)
}

// auditSettings puts on record which settings are in force, if they are others than before. It is called with reloading held.
func (g *Gateway) auditSettings(cfg *config.Config) error {
	if !g.auditor.kept() {
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
	now := g.auditor.digest(all.Bytes())
	if now == "" || now == g.inForce.settings {
		return nil
	}
	if err := g.auditor.append(audit.Event{Kind: audit.SettingsChanged, By: "file", Before: g.inForce.settings, After: now}); err != nil {
		return err
	}
	g.inForce.settings = now
	rules, err := json.Marshal(struct {
		Policy policy.Settings
		Labels []labelled
	}{cfg.Policy, labels(cfg)})
	if err != nil {
		return fmt.Errorf("digest policy: %w", err)
	}
	if now = g.auditor.digest(rules); now == g.inForce.policy {
		return nil
	}
	if err := g.auditor.append(audit.Event{Kind: audit.PolicyChanged, By: "file", Before: g.inForce.policy, After: now, Note: fmt.Sprintf("%d rules", len(cfg.Policy.Rules))}); err != nil {
		return err
	}
	g.inForce.policy = now
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
