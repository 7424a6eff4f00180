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

	changed chan struct{}
	settled chan struct{} // closed when every upstream was tried once and the snapshot shows it
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// member is one upstream in the catalog.
type member struct {
	cfg     config.Upstream
	session *upstream.Session
	tried   atomic.Bool
	// files are the wrappers made from tools; both belong to the goroutine that makes them.
	tools []tool.Tool
	files []codegen.File
}

// snapshot is all that readers see, made from one state of the lists.
type snapshot struct {
	tools []tool.Tool
	byID  map[tool.ID]tool.Tool
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
		changed: make(chan struct{}, 1), settled: make(chan struct{}), cancel: cancel,
	}
	c.snapshot.Store(&snapshot{})
	for _, up := range ups {
		m := &member{cfg: up}
		m.session = upstream.New(settings(up), &upstream.Options{Logger: log.With("upstream", up.ID), Version: version, OnTools: func([]tool.Tool) { c.touch() }})
		c.members, c.byID[up.ID] = append(c.members, m), m
	}
	c.work.Go(func() { c.follow(ctx) })
	c.work.Go(func() { c.connect(ctx) })
	return c, nil
}

func settings(up config.Upstream) upstream.Settings {
	return upstream.Settings{ID: up.ID, Command: up.Command, Args: up.Args, Env: up.Env, Dir: up.Dir, URL: up.URL, Headers: up.Headers, Timeout: up.Timeout}
}

// connecting is how many upstreams are started at once: each is a process that wants a core.
const connecting = 8

func (c *catalog) connect(ctx context.Context) {
	slots := make(chan struct{}, connecting)
	var tries sync.WaitGroup
	for _, m := range c.members {
		tries.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := m.session.Connect(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn("upstream is not available", "upstream", m.cfg.ID, "error", err.Error())
			}
			m.tried.Store(true)
		})
	}
	tries.Wait()
	c.touch()
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
		all := !slices.ContainsFunc(c.members, func(m *member) bool { return !m.tried.Load() })
		if err := c.rebuild(); err != nil {
			c.log.Error("rebuild catalog", "error", err)
		}
		if all && !c.isSettled() {
			close(c.settled)
		}
	}
}

func (c *catalog) isSettled() bool {
	select {
	case <-c.settled:
		return true
	default:
		return false
	}
}

func (c *catalog) settle(ctx context.Context) {
	select {
	case <-c.settled:
	case <-ctx.Done():
	}
}

// rebuild makes wrappers for the upstreams that changed, and index and snapshot from all.
func (c *catalog) rebuild() error {
	start := time.Now()
	var ups []codegen.Upstream
	next := &snapshot{byID: map[tool.ID]tool.Tool{}, files: map[string][]byte{}}
	var docs []index.Doc
	for _, m := range c.members {
		up := m.refresh()
		ups = append(ups, up)
		for _, file := range m.files {
			next.files[file.Path] = file.Data
		}
		for _, t := range m.tools {
			next.tools, next.byID[t.ID] = append(next.tools, t), t
			docs = append(docs, index.FromTool(t, up.Description))
		}
	}
	for _, file := range codegen.GenerateRoot(ups) {
		next.files[file.Path] = file.Data
	}
	slices.SortFunc(next.tools, func(a, b tool.Tool) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	err := errors.Join(c.index.Replace(docs), c.publish(next.files))
	c.snapshot.Store(next)
	c.log.Debug("catalog rebuilt", "tools", len(next.tools), "duration", time.Since(start))
	return err
}

// refresh takes over the session's list, and makes wrappers if it has changed.
func (m *member) refresh() codegen.Upstream {
	tools := m.session.Tools()
	up := codegen.Upstream{ID: m.cfg.ID, Title: m.session.State().ServerName, Description: m.cfg.Description, Tools: tools}
	if m.files == nil || !slices.EqualFunc(m.tools, tools, func(a, b tool.Tool) bool { return a.Digest() == b.Digest() }) {
		m.tools, m.files = tools, codegen.GenerateUpstream(up)
	}
	return up
}

func (c *catalog) current() *snapshot { return c.snapshot.Load() }

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

// tool returns a tool of an upstream that is connected, or was; it connects one
// that is not, so that a program can wake an upstream that had failed.
func (c *catalog) tool(id tool.ID) (tool.Tool, error) {
	if t, ok := c.current().byID[id]; ok {
		return t, nil
	}
	session, err := c.session(id.Upstream)
	if err != nil {
		return tool.Tool{}, err
	}
	var names []string
	for _, t := range session.Tools() { // fresher than the snapshot by a moment
		if t.ID == id {
			return t, nil
		}
		names = append(names, t.ID.Name)
	}
	if state := session.State(); len(names) == 0 && state.Error != "" {
		return tool.Tool{}, &tool.Error{Kind: tool.Upstream, Message: "upstream " + id.Upstream + " is not available: " + state.Error}
	}
	return tool.Tool{}, unknown("tool", id.String(), nearest.Of(id.Name, names))
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
