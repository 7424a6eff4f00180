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

// maxMarked is the number of files of a workspace that have their own labels; beyond that the whole workspace is labeled.
const maxMarked = 3000

// labelStore stores, by workspace, the labels of files that may contain data of labeled results.
type labelStore struct {
	bucket  *store.Bucket
	breaker *store.Breaker
	log     *slog.Logger
	shared  bool // other gateways change them, too

	mu     sync.Mutex
	opened map[string]*workspaceLabels
}

// openLabelStore opens the labels in a store; nil keeps them in memory.
func openLabelStore(in *store.Store, log *slog.Logger) (*labelStore, error) {
	if in == nil {
		in = store.Memory()
	}
	kept, err := in.Bucket("flow", store.Limits{Records: 10_000, Bytes: 16 << 20, Record: 4 << 20})
	if err != nil {
		return nil, err
	}
	return &labelStore{bucket: kept, breaker: in.Breaker(), log: log, shared: in.Shared(), opened: map[string]*workspaceLabels{}}, nil
}

// marks are the labels of the files of a workspace.
type marks struct {
	// Files holds the origins by path.
	Files map[string][]toolcall.Origin `json:"files,omitempty"`
	// Whole applies to all files: by the id of an update in progress, or by one of the keys below.
	Whole map[string][]toolcall.Origin `json:"whole,omitempty"`
}

// overflowKey is the key in Whole for labels of more than maxMarked files, unread the key if the labels cannot be read.
const (
	overflowKey   = "*"
	unreadableKey = "?"
)

// workspaceLabels holds the labels of the files of one workspace.
type workspaceLabels struct {
	store  *labelStore
	key    store.Key
	mu     sync.Mutex
	loaded bool
	// unsaved says that changes could not be stored: they apply in this process.
	unsaved bool
	// revision is that of the labels in the store, 0 for none.
	revision uint64
	marks
}

// get returns the labels of a workspace by its key in the store.
func (s *labelStore) get(key store.Key) *workspaceLabels {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, _ := json.Marshal(key) // unique for each key
	m := s.opened[string(name)]
	if m == nil {
		m = &workspaceLabels{store: s, key: key}
		s.opened[string(name)] = m
	} else if s.shared {
		m.reload()
	}
	return m
}

// reload reads the labels again before the next use.
func (m *workspaceLabels) reload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loaded = m.loaded && m.unsaved
}

// load reads the stored labels: once, or each time that a workspace is opened if other gateways may have changed them. Until they can be
// read, all files count as private and untrusted.
func (m *workspaceLabels) load() {
	if m.loaded {
		return
	}
	var entry store.Entry
	err := m.store.breaker.Do(context.Background(), func(ctx context.Context) (err error) {
		entry, err = m.store.bucket.Get(ctx, m.key)
		return err
	})
	m.marks, m.revision = marks{}, entry.Revision
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
		m.store.log.Error("labels of a workspace cannot be read, it is taken to hold private and untrusted data", "error", err)
		m.Whole[unreadableKey] = []toolcall.Origin{{Label: policy.Private}, {Label: policy.Untrusted}}
	}
}

// file returns the origins of the data that a file may contain.
func (m *workspaceLabels) file(path string) []toolcall.Origin {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	all := slices.Clone(m.Files[path])
	for _, by := range slices.Sorted(maps.Keys(m.Whole)) {
		all = append(all, m.Whole[by]...)
	}
	return all
}

// any reports whether any file is labeled.
func (m *workspaceLabels) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.load()
	return len(m.Files)+len(m.Whole) > 0
}

// set changes the labels and stores them. If they cannot be stored, it logs that, and they apply in this process only.
func (m *workspaceLabels) set(change func(m *marks)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for range maxChanges {
		m.load()
		change(&m.marks)
		if len(m.Files) > maxMarked {
			m.Whole[overflowKey] = distinct(m.Files, m.Whole[overflowKey])
			clear(m.Files)
		}
		if err = m.save(); !errors.Is(err, store.ErrConflict) {
			break
		}
		m.loaded = false // another gateway has changed them
	}
	if m.unsaved = err != nil; err != nil {
		m.store.log.Error("labels of a workspace are not kept", "error", err)
	}
}

// maxChanges bounds the attempts to change labels that other gateways change, too.
const maxChanges = 10

// save stores the labels; ErrConflict if another gateway has stored others.
func (m *workspaceLabels) save() error {
	data, err := json.Marshal(m.marks)
	if err != nil {
		return err
	}
	return m.store.breaker.Do(context.Background(), func(ctx context.Context) (err error) {
		switch {
		case !m.loaded: // they could not be read
			_, err = m.store.bucket.Put(ctx, m.key, data)
		case m.revision == 0:
			m.revision, err = m.store.bucket.Create(ctx, m.key, data)
		default:
			m.revision, err = m.store.bucket.Update(ctx, m.key, data, m.revision)
		}
		return err
	})
}

// distinct returns one origin for each label of all files and of more.
func distinct(files map[string][]toolcall.Origin, more []toolcall.Origin) []toolcall.Origin {
	var all toolcall.Trail
	all.Add(more...)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		all.Add(files[path]...)
	}
	return all.Origins()
}

// watchedWorkspace is a workspace that records the labels of files that are read, and labels the files that are written after labeled results were read.
type watchedWorkspace struct {
	workspaces.Space
	guard   *Guard
	session string              // a key of flows.trails
	running *toolcall.Execution // nil for a client's own tools
	marks   *workspaceLabels
}

// WatchFiles wraps a workspace so that labels follow its files. It returns ws itself if no rules are in force.
func (g *Guard) WatchFiles(ctx context.Context, ws workspaces.Space, name string, running *toolcall.Execution) workspaces.Space {
	if !g.policies.rules.Load().on || ws == nil {
		return ws
	}
	return &watchedWorkspace{ws, g, trailKey(ctx), running, g.flows.labels.get(g.spaceKey(ctx, name))}
}

// spaceKey returns the key of the marks of a workspace. A mapped folder has the same key for all principals.
func (g *Guard) spaceKey(ctx context.Context, name string) store.Key {
	if m, ok := g.opts.Workspaces.Mapping(ctx, name); ok {
		return store.Key{"mapped", m.Path, "folder"}
	}
	return history.KeyOf(tool.Principal(ctx), name)
}

// Files lists the files. It removes the labels of an empty workspace.
func (w *watchedWorkspace) Files() iter.Seq2[workspace.File, error] {
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

// Open records the labels of the file as read.
func (w *watchedWorkspace) Open(path string) (workspace.File, error) {
	f, err := w.Space.Open(path)
	if err != nil {
		return f, err
	}
	if err := w.guard.flows.note(w.session, w.running, w.file(path)...); err != nil {
		if f.Content != nil {
			_ = f.Content.Close()
		}
		return workspace.File{}, err
	}
	return f, nil
}

func (w *watchedWorkspace) file(path string) []toolcall.Origin {
	origins := w.marks.file(path)
	for i := range origins {
		origins[i].File, origins[i].Tool = path, ""
	}
	return origins
}

// Update labels the changed files. During the update the whole workspace is labeled, so that a crash leaves too many labels rather
// than too few.
func (w *watchedWorkspace) Update(changes iter.Seq2[workspace.File, error]) (workspace.Updated, error) {
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
			m.commit(changed, updated, origins)
		})
	}
	return updated, err
}

// origins returns the origins of what the writer has read, for the files that it writes.
func (w *watchedWorkspace) origins() []toolcall.Origin {
	origins := w.guard.flows.origins(w.session, w.running)
	for i := range origins {
		if w.running != nil {
			origins[i].Execution = w.running.ID
		}
	}
	return origins
}

// commit labels the written files. A rejected change keeps the file and its labels.
func (m *marks) commit(changed []workspace.File, updated workspace.Updated, origins []toolcall.Origin) {
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
