package guard

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workspaces"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// maxMarked is how many files of a workspace have marks of their own; beyond that the whole workspace is marked.
const maxMarked = 3000

// spaces remember which files hold what labelled results may have gone into, by workspaces, in a store.
type spaces struct {
	kept    *store.Bucket
	breaker store.Breaker
	log     *slog.Logger

	mu     sync.Mutex
	opened map[string]*markedSpace
}

// openSpaces remembers in a store; in memory only, for nil.
func openSpaces(in *store.Store, log *slog.Logger) (*spaces, error) {
	if in == nil {
		in = store.Memory()
	}
	kept, err := in.Bucket("flow", store.Limits{Records: 10_000, Bytes: 16 << 20, Record: 4 << 20})
	if err != nil {
		return nil, err
	}
	return &spaces{kept: kept, log: log, opened: map[string]*markedSpace{}}, nil
}

// marks are what files of a workspace may hold.
type marks struct {
	// Files are by their paths.
	Files map[string][]toolcall.Origin `json:"files,omitempty"`
	// Whole is of all files: of those that are being changed right now, by who does it, and of too many to tell apart.
	Whole map[string][]toolcall.Origin `json:"whole,omitempty"`
}

// tooMany is the key in Whole of what was too much to tell apart, unread of what cannot be read.
const (
	tooMany = "*"
	unread  = "?"
)

// markedSpace is what is known of the files of one workspace.
type markedSpace struct {
	spaces *spaces
	key    store.Key
	mu     sync.Mutex
	loaded bool
	marks
}

// of returns the marks of a workspace by its key in the store.
func (s *spaces) of(key store.Key) *markedSpace {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _ := json.Marshal(key) // no two keys look alike
	m := s.opened[string(name)]
	if m == nil {
		m = &markedSpace{spaces: s, key: key}
		s.opened[string(name)] = m
	}
	return m
}

// load reads what is kept, once. Until it can be read, all is taken to be private and untrusted.
func (m *markedSpace) load() {
	if m.loaded {
		return
	}
	var entry store.Entry
	err := m.spaces.breaker.Do(context.Background(), func(ctx context.Context) (err error) {
		entry, err = m.spaces.kept.Get(ctx, m.key)
		return err
	})
	m.marks = marks{}
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = nil
	case err == nil:
		err = json.Unmarshal(entry.Value, &m.marks)
	}
	if m.Files == nil {
		m.Files = map[string][]toolcall.Origin{}
	}
	if m.Whole == nil {
		m.Whole = map[string][]toolcall.Origin{}
	}
	if m.loaded = err == nil; err != nil {
		m.spaces.log.Error("labels of a workspace cannot be read, it is taken to hold private and untrusted data", "error", err)
		m.Whole[unread] = []toolcall.Origin{{Label: policy.Private}, {Label: policy.Untrusted}}
	}
}

// file returns what a file may hold.
func (m *markedSpace) file(path string) []toolcall.Origin {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	all := slices.Clone(m.Files[path])
	for _, by := range slices.Sorted(maps.Keys(m.Whole)) {
		all = append(all, m.Whole[by]...)
	}
	return all
}

// any reports whether anything is marked.
func (m *markedSpace) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	return len(m.Files)+len(m.Whole) > 0
}

// set changes marks, and keeps them. They count in this process in any case; that they are not kept is logged.
func (m *markedSpace) set(change func(m *marks)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	change(&m.marks)
	if len(m.Files) > maxMarked {
		m.Whole[tooMany] = distinct(m.Files, m.Whole[tooMany])
		clear(m.Files)
	}
	data, err := json.Marshal(m.marks)
	if err == nil {
		err = m.spaces.breaker.Do(context.Background(), func(ctx context.Context) error {
			_, err := m.spaces.kept.Put(ctx, m.key, data)
			return err
		})
	}
	if err != nil {
		m.spaces.log.Error("labels of a workspace are not kept", "error", err)
	}
}

// distinct has one origin for each label of all files, and of more.
func distinct(files map[string][]toolcall.Origin, more []toolcall.Origin) []toolcall.Origin {
	var all toolcall.Trail
	all.Add(more...)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		all.Add(files[path]...)
	}
	return all.Origins()
}

// watched is a workspace that records the labels of files that are read, and marks files that are written after labelled results were read.
type watched struct {
	workspaces.Space
	guard   *Guard
	session string              // a key of flows.trails
	running *toolcall.Execution // nil for a client's own tools
	marks   *markedSpace
}

// WatchFiles has a workspace watched, where there are rules at all.
func (g *Guard) WatchFiles(ctx context.Context, ws workspaces.Space, name string, running *toolcall.Execution) workspaces.Space {
	if !g.policies.rules.Load().on || ws == nil {
		return ws
	}
	return &watched{ws, g, trailKey(ctx), running, g.flows.spaces.of(g.spaceKey(ctx, name))}
}

// spaceKey returns the key of the marks of a workspace. A mapped folder has the same key for all principals.
func (g *Guard) spaceKey(ctx context.Context, name string) store.Key {
	if m, ok := g.opts.Workspaces.Mapping(ctx, name); ok {
		return store.Key{"mapped", m.Path, "folder"}
	}
	return history.KeyOf(tool.Principal(ctx), name)
}

// Files forgets the marks of a workspace that has nothing in it.
func (w *watched) Files() iter.Seq2[workspace.File, error] {
	return func(yield func(workspace.File, error) bool) {
		empty := true
		for f, err := range w.Space.Files() {
			empty = false
			if !yield(f, err) {
				return
			}
		}
		if empty && w.marks.any() {
			w.marks.set(func(m *marks) { clear(m.Files); clear(m.Whole) })
		}
	}
}

// Open notes what the file may hold.
func (w *watched) Open(path string) (workspace.File, error) {
	f, err := w.Space.Open(path)
	if err == nil {
		w.guard.flows.note(w.session, w.running, w.file(path)...)
	}
	return f, err
}

func (w *watched) file(path string) []toolcall.Origin {
	origins := w.marks.file(path)
	for i := range origins {
		origins[i].File, origins[i].Tool = path, ""
	}
	return origins
}

// Update marks what changes, before it does. Until all changes are there the whole workspace is marked, so that a crash in between
// leaves too much marked and not too little.
func (w *watched) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
	origins := w.origins()
	if len(origins) == 0 && !w.marks.any() {
		return w.Space.Update(changes)
	}
	var changed []workspace.File
	by := execution.NewID()
	updated, err := w.Space.Update(func(yield func(workspace.File, error) bool) {
		for f, err := range changes {
			if err == nil && len(changed) == 0 && len(origins) > 0 {
				w.marks.set(func(m *marks) { m.Whole[by] = origins })
			}
			if err == nil {
				changed = append(changed, workspace.File{Path: f.Path, Folder: f.Folder, Gone: f.Gone})
			}
			if !yield(f, err) {
				return
			}
		}
	})
	if len(changed) > 0 {
		w.marks.set(func(m *marks) {
			delete(m.Whole, by)
			m.settle(changed, updated, origins)
		})
	}
	return updated, err
}

// origins returns what the writer has read, as origins of a file.
func (w *watched) origins() []toolcall.Origin {
	origins := w.guard.flows.origins(w.session, w.running)
	for i := range origins {
		if w.running != nil {
			origins[i].Execution = w.running.ID
		}
	}
	return origins
}

// settle marks what was written. What was not taken stays as it was, and so does its mark.
func (m *marks) settle(changed []workspace.File, updated workspace.Updated, origins []toolcall.Origin) {
	for _, f := range changed {
		_, taken := updated.Versions[f.Path]
		switch {
		case f.Gone:
			delete(m.Files, f.Path)
		case taken && len(origins) > 0:
			m.Files[f.Path] = origins
		case taken:
			delete(m.Files, f.Path)
		}
	}
}
