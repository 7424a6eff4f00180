package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sallyport/internal/filelock"
)

// saveLife is how long a saved content may wait for its commit. An [Origin] keeps contents that no file has for longer.
const saveLife = 5 * time.Minute

// publish commits the changes to the origin, and then makes them in the directory. A process that is killed between the two leaves a
// copy that the next refresh brings up to date.
func (s *stage) publish() error {
	ctx, c := context.Background(), s.dir.opts.Copy // the origin bounds the time
	saved := newSaves(s)
	if err := saved.all(ctx, c.refs()); err != nil {
		return err
	}
	unlock, err := filelock.Dir(s.dir.dir, lockPatience)
	if err != nil {
		return err
	}
	defer unlock()
	if !c.isLoaded(s.dir.root) {
		if err := s.dir.refresh(ctx); err != nil {
			return err
		}
	}
	notes := s.notes
	for range maxAttempts {
		err := s.publishOnce(ctx, saved)
		if !errors.Is(err, ErrOutdated) {
			return err
		}
		s.notes, s.made, s.bytes = notes, map[string]string{}, 0
		if err := s.dir.refresh(ctx); err != nil {
			return err
		}
	}
	return ErrOutdated
}

// publishOnce commits the changes after the last commit that the directory has: [ErrOutdated] if there is a newer one.
func (s *stage) publishOnce(ctx context.Context, saved *saves) error {
	if err := s.scan(); err != nil {
		return err
	}
	plan := newDraft(s)
	s.partial = false
	s.target = plan
	s.apply()
	s.target = directory{s}
	if s.dir.opts.All && s.partial {
		return ErrPartial
	}
	if len(plan.steps) == 0 {
		return nil
	}
	c := s.dir.opts.Copy
	commit, err := plan.commit(ctx, c, saved)
	if err != nil {
		return err
	}
	at, err := c.origin.Commit(ctx, c.point, commit)
	if err != nil {
		return err
	}
	if err := s.replay(plan.steps, at, commit); err != nil {
		return err
	}
	return s.dir.compact(ctx, at)
}

// compact lets the origin make its sequence of commits shorter. It is tried again after the next commit.
func (d *Dir) compact(ctx context.Context, at Point) error {
	c := d.opts.Copy
	now, err := c.origin.Compact(ctx, at, c.files)
	if err != nil {
		c.log.Warn("the records of a workspace are not compacted", "directory", d.dir, "error", err)
		return nil
	}
	if now == at {
		return nil
	}
	return c.note(d.root, now, nil)
}

// replay makes the committed changes in the directory.
func (s *stage) replay(steps []planned, at Point, commit Commit) error {
	c, root := s.dir.opts.Copy, s.dir.root
	c.setCompared(false)
	lines := make([]indexed, len(commit.Entries))
	for i, e := range commit.Entries {
		e.By = at.ID
		lines[i] = indexed{Entry: e}
	}
	if err := c.note(root, at, lines); err != nil {
		return err
	}
	local := map[string]string{}
	var failed error
	for _, one := range steps {
		made, err := one.do(directory{s})
		failed = errors.Join(failed, err)
		if local[one.Path] = made; made != "" {
			s.made[one.Path] = at.ID
		}
	}
	if failed != nil { // the next refresh makes the rest
		return fmt.Errorf("the changes are in the store, and not all of them in the directory: %w", failed)
	}
	for i, e := range lines {
		if lines[i].Local = local[e.Path]; e.Gone {
			lines[i] = indexed{Entry: Entry{Path: e.Path}, Forget: true}
		}
	}
	if err := errors.Join(c.note(root, at, lines), s.syncNames()); err != nil {
		return err
	}
	c.setCompared(true)
	return nil
}

// draft is the target of changes that are planned: it has the rules of a directory.
type draft struct {
	stage    *stage
	children map[string]int // of folders
	steps    []planned
}

// planned is one planned change of a path: a removal, a new folder, or a new content.
type planned struct {
	change

	removed bool
}

func (o planned) do(t target) (made string, err error) {
	switch {
	case o.removed:
		return "", t.remove(o.Path)
	case o.Folder:
		return "", t.mkdir(o.Path)
	}
	return t.move(o.change)
}

func newDraft(s *stage) *draft {
	p := &draft{stage: s, children: map[string]int{}}
	for path := range s.existing {
		p.children[parent(path)]++
	}
	return p
}

func (p *draft) remove(path string) error {
	if p.children[path] > 0 {
		return errFolderThere
	}
	p.children[parent(path)]--
	p.steps = append(p.steps, planned{change: change{File: File{Path: path}}, removed: true})
	return nil
}

func (p *draft) mkdir(path string) error {
	p.children[parent(path)]++
	p.steps = append(p.steps, planned{change: change{File: File{Path: path, Folder: true}}})
	return nil
}

func (p *draft) move(c change) (string, error) {
	if _, there := p.stage.existing[c.Path]; !there {
		p.children[parent(c.Path)]++
	}
	p.steps = append(p.steps, planned{change: c})
	return "", nil
}

// commit returns the commit of the plan. Contents that the origin has no longer are saved again.
func (p *draft) commit(ctx context.Context, c *Copy, saved *saves) (commit Commit, err error) {
	at, refs := map[string]int{}, c.refs() // the last step of a path counts
	for _, one := range p.steps {
		e := Entry{Path: one.Path, Folder: one.Folder && !one.removed, Gone: one.removed}
		if !e.Folder && !e.Gone {
			e.Executable, e.Size, e.Modified, e.Hash = one.Executable, one.Size, time.Now().UnixNano(), one.hash
			if e.Ref, err = saved.ref(ctx, one.change, refs); err != nil {
				return commit, err
			}
		}
		if i, twice := at[e.Path]; twice {
			commit.Entries[i] = e
			continue
		}
		at[e.Path] = len(commit.Entries)
		commit.Entries = append(commit.Entries, e)
	}
	commit.Empty, commit.Dropped = len(p.stage.existing) == 0, c.dropped(commit.Entries)
	return commit, nil
}

// dropped returns the size of the contents that changes replace.
func (c *Copy) dropped(changes []Entry) (size int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, e := range changes {
		if before, known := c.known[e.Path]; known && before.Ref != e.Ref {
			size += before.Size
		}
	}
	return size
}

// saves are the contents of an update that are in the origin.
type saves struct {
	stage *stage

	mu   sync.Mutex
	refs map[string]save // by hash
}

// save is a content in the origin.
type save struct {
	ref string
	at  time.Time
}

func newSaves(s *stage) *saves { return &saves{stage: s, refs: map[string]save{}} }

// all saves the contents that no file has yet. Those without room in the origin are noted, and left as they are.
func (v *saves) all(ctx context.Context, refs map[string]string) error {
	begun := map[string]bool{}
	var work sync.WaitGroup
	errs := make([]error, len(v.stage.changes))
	slots := make(chan struct{}, fetchers)
	for i, c := range v.stage.changes {
		if _, known := refs[c.hash]; c.temp == "" || known || begun[c.hash] {
			continue
		}
		begun[c.hash] = true
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = v.save(ctx, c)
		})
	}
	work.Wait()
	full := map[string]bool{}
	for i, err := range errs {
		if errors.Is(err, ErrStoreFull) && !v.stage.dir.opts.All {
			full[v.stage.changes[i].hash] = true
		} else if err != nil {
			return err
		}
	}
	v.leaveOut(full)
	return nil
}

// leaveOut drops the changes with contents for which there is no room.
func (v *saves) leaveOut(full map[string]bool) {
	if len(full) == 0 {
		return
	}
	s := v.stage
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool {
		if c.temp == "" || !full[c.hash] {
			return false
		}
		s.notes.Add(c.Path, ErrStoreFull.Error())
		s.drop(&c)
		return true
	})
}

// save saves the content of a change.
func (v *saves) save(ctx context.Context, c change) error {
	f, err := v.stage.temp.Open(c.temp)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	began := time.Now()
	ref, err := v.stage.dir.opts.Copy.origin.Save(ctx, c.hash, c.Size, f)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refs[c.hash] = save{ref, began}
	return nil
}

// ref returns the ref of a content for a commit: that of a file that has it, or of a content that was saved a short time ago.
func (v *saves) ref(ctx context.Context, c change, refs map[string]string) (string, error) {
	if ref, known := refs[c.hash]; known {
		return ref, nil
	}
	if one, ok := v.refs[c.hash]; ok && time.Since(one.at) < saveLife {
		return one.ref, nil
	}
	if err := v.save(ctx, c); err != nil {
		return "", err
	}
	return v.refs[c.hash].ref, nil
}

// refs returns the refs of the contents that files have, by hash.
func (c *Copy) refs() map[string]string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := map[string]string{}
	for _, k := range c.known {
		if !k.Gone && !k.Folder {
			all[k.Hash] = k.Ref
		}
	}
	return all
}
