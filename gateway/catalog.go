package gateway

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
	"sallyport/internal/config"
	"sallyport/internal/watch"
)

// catalog keeps what the upstreams offer, and what is made from it: the wrappers
// and the index. One goroutine makes them anew when a list has changed; readers
// see one consistent snapshot and never wait for it.
type catalog struct {
	log      *slog.Logger
	opts     Options
	cache    *cache
	book     *trust.Book  // nil pins nothing
	index    *index.Index // of tools
	offered  *index.Index // of resources, templates and prompts
	shapes   learning
	publish  func(files func() map[string][]byte) error
	slots    chan struct{} // how many upstreams may be starting at once
	roster   atomic.Pointer[roster]
	snapshot atomic.Pointer[snapshot]
	watchers watch.List

	changed  chan struct{}
	ended    <-chan struct{}
	cancel   context.CancelFunc
	work     sync.WaitGroup
	changing sync.Mutex // held while the roster is being changed
}

// openCatalog makes a catalog whose first snapshot, of nothing, is there at once.
func openCatalog(cfg *config.Config, opts Options, publish func(func() map[string][]byte) error) (*catalog, error) {
	book, err := openBook(opts)
	if err != nil {
		return nil, err
	}
	ix, err := index.New(nil, &index.Options{Logger: opts.Logger, Dir: snapshots(opts.CacheDir)})
	if err != nil {
		return nil, err
	}
	offered, err := index.New(nil, &index.Options{Logger: opts.Logger})
	if err != nil {
		return nil, errors.Join(err, ix.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &catalog{
		log: opts.Logger, opts: opts, book: book, cache: openCache(opts.CacheDir, opts.Logger), index: ix, offered: offered, publish: publish, slots: make(chan struct{}, connecting),
		changed: make(chan struct{}, 1), ended: ctx.Done(), cancel: cancel,
	}
	if cfg.Observe {
		c.openShapes()
	}
	none, _, _ := assemble(newRoster(nil))
	c.snapshot.Store(none)
	if err := publish(none.files); err != nil {
		cancel()
		return nil, errors.Join(err, c.shapes.close(), ix.Close(), offered.Close(), c.cache.close())
	}
	ups := enabled(cfg)
	members := make([]*member, len(ups))
	for i, up := range ups {
		members[i] = newMember(up)
	}
	c.roster.Store(newRoster(members))
	c.touch()
	c.work.Go(func() { c.follow(ctx, members) })
	c.work.Go(func() { c.patrol(ctx) })
	return c, nil
}

// snapshots is the folder of the index within that of the cache.
func snapshots(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "index")
}

// boot starts members, on all cores: what the cache has of sixty is megabytes.
func (c *catalog) boot(members []*member) {
	each(len(members), func(i int) { members[i].authorize(c) }) // all of them: one upstream may come upon another's tokens
	each(len(members), func(i int) { members[i].boot(c) })
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

// touch asks for a new snapshot; asking twice before it is made is asking once.
func (c *catalog) touch() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// follow starts the members that there are at first, and makes a new snapshot whenever a list has changed.
func (c *catalog) follow(ctx context.Context, first []*member) {
	c.boot(first)

	for swept := false; ; swept = true {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		roster := c.roster.Load()
		tried := slices.DeleteFunc(slices.Clone(roster.members), func(m *member) bool { return m.isShown || !m.tried.Load() })
		if err := c.rebuild(roster); err != nil {
			c.log.Error("rebuild catalog", "error", err)
		}
		for _, m := range tried {
			m.isShown = true
			close(m.shown)
		}
		for _, m := range roster.members {
			c.save(m)
		}
		if !swept {
			c.cache.sweep()
		}
		c.prepare(roster)
	}
}

// prepare makes the wrappers and what answers leave out, so that the first program finds them made, unless
// there is something better to do.
func (c *catalog) prepare(r *roster) {
	each(len(r.members), func(i int) {
		if !c.over() && len(c.changed) == 0 {
			r.members[i].portrait.habits()
			r.members[i].portrait.files()
		}
	})
}

// settle waits until the snapshot shows what came of the first attempt to
// connect to one upstream, or to all for "".
func (c *catalog) settle(ctx context.Context, id string) {
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
func (c *catalog) rebuild(r *roster) error {
	start := time.Now()
	changed := 0
	for _, m := range r.members {
		if c.look(m) {
			changed++
		}
	}
	if changed == 0 && r == c.current().roster {
		return nil
	}
	next, tools, offers := assemble(r)
	err := errors.Join(c.publish(next.files), c.index.Replace(tools), c.offered.Replace(offers))
	c.snapshot.Store(next)
	c.watchers.Notify()
	c.log.Debug("catalog rebuilt", "tools", len(next.tools), "changed", changed, "duration", time.Since(start))
	return err
}

func (c *catalog) current() *snapshot { return c.snapshot.Load() }

// over reports whether close has been called.
func (c *catalog) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *catalog) upstreams() []Upstream {
	members := c.roster.Load().members
	ups := make([]Upstream, len(members))
	for i, m := range members {
		ups[i] = m.status()
	}
	return ups
}

func (c *catalog) offers() []Offered {
	members := c.roster.Load().members
	all := make([]Offered, len(members))
	for i, m := range members {
		all[i] = m.offered()
	}
	return all
}

func (c *catalog) close() error {
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
	return errors.Join(append(errs, c.shapes.close(), c.index.Close(), c.offered.Close(), c.cache.close())...)
}
