package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/codegen"
	"sallyport/gateway/upstream"
	"sallyport/index"
	"sallyport/internal/config"
	"sallyport/internal/nearest"
	"sallyport/internal/tool"
)

// catalog keeps what the upstreams offer, and what is made from it: the wrappers
// and the index. One goroutine makes them anew when a list has changed; readers
// see one consistent snapshot and never wait for it.
type catalog struct {
	log      *slog.Logger
	members  []*member
	byID     map[string]*member
	index    *index.Index
	publish  func(files map[string][]byte) error
	snapshot atomic.Pointer[snapshot]
	watchers watchers

	changed chan struct{}
	ended   <-chan struct{}
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// member is one upstream in the catalog.
type member struct {
	cfg     config.Upstream
	session *upstream.Session
	tried   atomic.Bool   // the first attempt to connect is over
	shown   chan struct{} // closed when the snapshot shows what came of it
	stale   atomic.Bool   // the session's list is newer than entries
	// entries and files belong to the goroutine that makes them.
	entries []*entry
	files   []codegen.File
}

// entry is one tool in a snapshot. What a call of it needs is made by the first
// call, and kept for as long as the definition stays.
type entry struct {
	tool.Tool
	input func() *inputSchema
}

func newEntry(t tool.Tool) *entry {
	return &entry{Tool: t, input: sync.OnceValue(func() *inputSchema { return compileSchema(t.Input) })}
}

// snapshot is all that readers see, made from one state of the lists.
type snapshot struct {
	tools []tool.Tool
	byID  map[tool.ID]*entry
	files map[string][]byte
}

func openCatalog(ups []config.Upstream, log *slog.Logger, version string, publish func(map[string][]byte) error) (*catalog, error) {
	ix, err := index.New(nil, &index.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &catalog{
		log: log, byID: map[string]*member{}, index: ix, publish: publish,
		changed: make(chan struct{}, 1), ended: ctx.Done(), cancel: cancel,
	}
	for _, up := range ups {
		m := &member{cfg: up, shown: make(chan struct{})}
		m.stale.Store(true)
		m.session = upstream.New(settings(up), &upstream.Options{
			Logger: log.With("upstream", up.ID), Version: version,
			OnOffer: func(tool.Offer) { m.stale.Store(true); c.touch() },
		})
		c.members, c.byID[up.ID] = append(c.members, m), m
	}
	if err := c.rebuild(); err != nil { // of no tools yet: there is always a snapshot
		cancel()
		return nil, errors.Join(err, ix.Close())
	}
	c.work.Go(func() { c.follow(ctx) })
	c.work.Go(func() { c.connect(ctx) })
	return c, nil
}

func settings(up config.Upstream) upstream.Settings {
	return upstream.Settings{ID: up.ID, Command: up.Command, Args: up.Args, Env: up.Env, Dir: up.Dir, URL: up.URL, Headers: up.Headers, Timeout: up.Timeout}
}

// touch asks for a new snapshot; asking twice before it is made is asking once.
func (c *catalog) touch() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// follow makes a new snapshot whenever a list has changed.
func (c *catalog) follow(ctx context.Context) {
	waiting := c.members
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		var tried, rest []*member
		for _, m := range waiting {
			if m.tried.Load() {
				tried = append(tried, m)
			} else {
				rest = append(rest, m)
			}
		}
		if err := c.rebuild(); err != nil {
			c.log.Error("rebuild catalog", "error", err)
		}
		for _, m := range tried {
			close(m.shown)
		}
		waiting = rest
	}
}

// settle waits until the snapshot shows what came of the first attempt to
// connect to one upstream, or to all for "".
func (c *catalog) settle(ctx context.Context, id string) {
	for _, m := range c.members {
		if id != "" && m.cfg.ID != id {
			continue
		}
		select {
		case <-m.shown:
		case <-c.ended:
		case <-ctx.Done():
			return
		}
	}
}

// rebuild makes wrappers for the upstreams that changed, and index and snapshot
// from all. The wrappers come first: what a search finds, a program can import.
func (c *catalog) rebuild() error {
	start := time.Now()
	changed := false
	for _, m := range c.members {
		changed = m.refresh() || changed
	}
	if !changed && c.current() != nil {
		return nil
	}
	next, docs := c.assemble()
	err := errors.Join(c.publish(next.files), c.index.Replace(docs))
	c.snapshot.Store(next)
	c.watchers.tell()
	c.log.Debug("catalog rebuilt", "tools", len(next.tools), "duration", time.Since(start))
	return err
}

func (c *catalog) assemble() (*snapshot, []index.Doc) {
	next := &snapshot{byID: map[tool.ID]*entry{}, files: map[string][]byte{}}
	var docs []index.Doc
	var ups []codegen.Upstream
	for _, m := range c.members {
		up := m.describe()
		ups = append(ups, up)
		for _, file := range m.files {
			next.files[file.Path] = file.Data
		}
		for _, e := range m.entries {
			next.tools, next.byID[e.ID] = append(next.tools, e.Tool), e
			docs = append(docs, index.FromTool(e.Tool, up.Title+" "+up.Description))
		}
	}
	for _, file := range codegen.GenerateRoot(ups) {
		next.files[file.Path] = file.Data
	}
	slices.SortFunc(next.tools, func(a, b tool.Tool) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return next, docs
}

// refresh takes over the session's list if it is newer, and reports whether it was.
func (m *member) refresh() bool {
	if !m.stale.Swap(false) {
		return false
	}
	known := map[tool.ID]*entry{}
	for _, e := range m.entries {
		known[e.ID] = e
	}
	m.entries = nil
	for _, t := range m.session.Tools() {
		if old := known[t.ID]; old != nil && old.Digest() == t.Digest() {
			m.entries = append(m.entries, old)
			continue
		}
		m.entries = append(m.entries, newEntry(t))
	}
	m.files = codegen.GenerateUpstream(m.describe())
	return true
}

func (m *member) describe() codegen.Upstream {
	up := codegen.Upstream{ID: m.cfg.ID, Title: m.session.State().ServerName, Description: m.cfg.Description}
	for _, e := range m.entries {
		up.Tools = append(up.Tools, e.Tool)
	}
	return up
}

func (c *catalog) current() *snapshot { return c.snapshot.Load() }

func (c *catalog) offers() []Offered {
	all := make([]Offered, len(c.members))
	for i, m := range c.members {
		all[i] = Offered{ID: m.cfg.ID, Name: m.cfg.Name, Description: m.cfg.Description, Offer: m.session.Offer(), State: m.session.State()}
	}
	return all
}

func (c *catalog) upstreams() []Upstream {
	ups := make([]Upstream, len(c.members))
	for i, m := range c.members {
		ups[i] = Upstream{ID: m.cfg.ID, Name: m.cfg.Name, Description: m.cfg.Description, State: m.session.State()}
	}
	return ups
}

// session returns the session of an upstream.
func (c *catalog) session(id string) (*upstream.Session, error) {
	if m, ok := c.byID[id]; ok {
		return m.session, nil
	}
	return nil, unknown("upstream", id, nearest.Of(id, c.ids()))
}

// known returns a tool that is in the snapshot, or will be in a moment.
func (c *catalog) known(id tool.ID) (*entry, bool) {
	if e, ok := c.current().byID[id]; ok {
		return e, true
	}
	if m, ok := c.byID[id.Upstream]; ok {
		for _, t := range m.session.Tools() {
			if t.ID == id {
				return newEntry(t), true
			}
		}
	}
	return nil, false
}

// find returns a tool to call. It connects an upstream that is not connected,
// so that a call wakes one that was down.
func (c *catalog) find(ctx context.Context, id tool.ID) (*entry, error) {
	if e, ok := c.known(id); ok {
		return e, nil
	}
	session, err := c.session(id.Upstream)
	if err != nil {
		return nil, err
	}
	if err := session.Connect(ctx); err != nil {
		return nil, err
	}
	if e, ok := c.known(id); ok {
		return e, nil
	}
	return nil, unknown("tool", id.String(), nearestTool(id, session.Tools()))
}

// nearestTool returns the id of the tool that was probably meant, "" if there is none.
func nearestTool(id tool.ID, tools []tool.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.ID.Name
	}
	near := nearest.Of(id.Name, names)
	if near == "" {
		return ""
	}
	return tool.ID{Upstream: id.Upstream, Name: near}.String()
}

func (c *catalog) ids() []string {
	ids := make([]string, len(c.members))
	for i, m := range c.members {
		ids[i] = m.cfg.ID
	}
	return ids
}

// File and List make a snapshot the tree that TypeScript programs are compiled against.
func (s *snapshot) File(path string) ([]byte, bool) {
	data, ok := s.files[path]
	return data, ok
}

// List returns the names of an upstream's tools, or of the upstreams for "".
func (s *snapshot) List(upstream string) []string {
	seen := map[string]bool{}
	for path := range s.files {
		folder, name, ok := strings.Cut(path, "/")
		switch {
		case ok && upstream == "":
			seen[folder] = true
		case ok && folder == upstream && strings.HasSuffix(name, ".ts") && name != "index.ts":
			seen[strings.TrimSuffix(name, ".ts")] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *catalog) close() error {
	c.cancel()
	var ends sync.WaitGroup
	errs := make([]error, len(c.members))
	for i, m := range c.members {
		ends.Go(func() { errs[i] = m.session.Close() })
	}
	ends.Wait()
	c.work.Wait()
	return errors.Join(append(errs, c.index.Close())...)
}
