// Package catalog holds what the upstreams offer now: the sessions to them, the definitions of their tools, and the wrappers and
// search indexes that are generated from these. Its main type is [Catalog].
package catalog

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/trust"
	"sallyport/index"
	"sallyport/internal/watch"
)

// Catalog holds the upstreams' offers, and the wrappers and indexes generated from
// them. One goroutine regenerates these when a list changes; readers see a
// consistent snapshot and never wait for it.
type Catalog struct {
	log             *slog.Logger
	opts            Options
	cache           *cache
	trustStore      *trust.Store // nil pins nothing
	index           *index.Index // of tools
	offerIndex      *index.Index // of resources, templates and prompts
	shapes          shapeStore
	slots           chan struct{} // limits how many upstreams start concurrently
	roster          atomic.Pointer[roster]
	snapshot        atomic.Pointer[Snapshot]
	connectDeadline atomic.Pointer[time.Time] // until then, callers wait for first connections
	watchers        watch.List

	changed  chan struct{}
	ended    <-chan struct{}
	cancel   context.CancelFunc
	work     sync.WaitGroup
	changing sync.Mutex // held while the roster is being changed
}

// Open returns a catalog. Its first snapshot is empty.
func Open(opts Options) (*Catalog, error) {
	book, err := openTrustStore(opts)
	if err != nil {
		return nil, err
	}
	ix, err := index.New(nil, &index.Options{Logger: opts.Logger, Dir: indexDir(opts.CacheDir)})
	if err != nil {
		return nil, err
	}
	offered, err := index.New(nil, &index.Options{Logger: opts.Logger})
	if err != nil {
		return nil, errors.Join(err, ix.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Catalog{
		log: opts.Logger, opts: opts, trustStore: book, cache: openCache(opts.CacheDir, opts.Logger), index: ix, offerIndex: offered, slots: make(chan struct{}, maxConnecting),
		changed: make(chan struct{}, 1), ended: ctx.Done(), cancel: cancel,
	}
	cfg := opts.Settings.Load()
	readiness{c}.resetDeadline()
	if cfg.Observe {
		observations{c}.openShapes()
	}
	none, _, _ := assemble(newRoster(nil))
	c.snapshot.Store(none)
	if err := opts.Publish(none.Files); err != nil {
		cancel()
		return nil, errors.Join(err, c.shapes.close(), ix.Close(), offered.Close(), c.cache.close())
	}
	ups := enabledUpstreams(cfg)
	members := make([]*member, len(ups))
	for i, up := range ups {
		members[i] = newMember(up)
	}
	c.roster.Store(newRoster(members))
	membership{c}.requestRebuild()
	c.work.Go(func() { membership{c}.follow(ctx, members) })
	c.work.Go(func() { reviews{c}.watchTrust(ctx) })
	return c, nil
}

// indexDir returns the index's folder below the cache folder.
func indexDir(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "index")
}

// boot starts members, on all cores: their cached offers may be megabytes.
func (c membership) boot(members []*member) {
	each(len(members), func(i int) { members[i].authorize(c.Catalog) }) // all of them first: one upstream may receive another's tokens
	each(len(members), func(i int) { members[i].boot(c.Catalog) })
}

// each calls do for 0 to n-1 on all cores, and waits.
func each(n int, do func(i int)) {
	var work sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	work.Wait()
}

// requestRebuild requests a new snapshot. Requests before it is made count as one.
func (c membership) requestRebuild() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// follow boots the initial members, then makes a new snapshot whenever a list has changed.
func (c membership) follow(ctx context.Context, first []*member) {
	c.boot(first)

	for swept := false; ; swept = true {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		roster := c.roster.Load()
		tried := slices.DeleteFunc(slices.Clone(roster.members), func(m *member) bool { return m.isShown || !m.tried.Load() })
		if err := wrappers(c).rebuild(roster); err != nil {
			c.log.Error("rebuild catalog", "error", err)
		}
		for _, m := range tried {
			m.isShown = true
			close(m.shown)
		}
		for _, m := range roster.members {
			wrappers(c).save(m)
		}
		if !swept {
			c.cache.sweep()
		}
		wrappers(c).prepare(roster)
	}
}

// wrappers generates the wrappers.
type wrappers struct{ *Catalog }

// prepare generates wrappers and boilerplate ahead of the first program. It stops when another snapshot is
// requested.
func (c wrappers) prepare(r *roster) {
	each(len(r.members), func(i int) {
		if !c.Closed() && len(c.changed) == 0 {
			r.members[i].artifacts.boilerplate()
			r.members[i].artifacts.files()
		}
	})
}

// waitShown waits until the snapshot shows the result of the first attempt to
// connect to one upstream, or to all for "".
func (c wrappers) waitShown(ctx context.Context, id string) {
	for _, m := range c.roster.Load().members {
		if id != "" && m.id != id {
			continue
		}
		select {
		case <-m.shown:
		case <-m.ended:
		case <-c.ended:
		case <-ctx.Done():
			return
		}
	}
}

// rebuild makes index and snapshot, if something has changed. Programs get the
// wrappers of the newest snapshot, so what a search finds can be imported.
func (c wrappers) rebuild(r *roster) error {
	start := time.Now()
	changed := 0
	for _, m := range r.members {
		if membership(c).refreshArtifacts(m) {
			changed++
		}
	}
	if changed == 0 && r == c.Snapshot().roster {
		return nil
	}
	next, tools, offers := assemble(r)
	err := errors.Join(c.opts.Publish(next.Files), c.index.Replace(tools), c.offerIndex.Replace(offers))
	c.snapshot.Store(next)
	c.watchers.Notify()
	c.log.Debug("catalog rebuilt", "tools", len(next.Tools), "changed", changed, "duration", time.Since(start))
	return err
}

// Snapshot returns what searches and programs see now.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// Closed reports whether close has been called.
func (c *Catalog) Closed() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Close closes the sessions and waits for their end.
func (c *Catalog) Close() error {
	c.cancel()
	c.changing.Lock()
	defer c.changing.Unlock()
	members := c.roster.Load().members
	var ends sync.WaitGroup
	errs := make([]error, len(members))
	for i, m := range members {
		ends.Go(func() { errs[i] = m.close() })
	}
	ends.Wait()
	c.work.Wait()
	if c.trustStore != nil {
		c.trustStore.Close()
	}
	return errors.Join(append(errs, c.shapes.close(), c.index.Close(), c.offerIndex.Close(), c.cache.close())...)
}
