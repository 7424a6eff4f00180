package shared

import (
	"context"
	"errors"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

const (
	// maxDepth is the number of commits after which all files are written as one.
	maxDepth = 50
	// maxDropped is the size of the contents that no file has, in addition to that of all files, above which they are removed.
	maxDropped = 32 << 20
	// unusedTime is how long a content that no file has is kept, by the clock of the servers. A writer commits it earlier, or saves it again.
	unusedTime = 15 * time.Minute
)

// Compact implements [workspace.Origin].
//
// A content that no file has may be of a writer that has not committed yet. So it is listed first, and removed by a later call if it is
// still unused and has been on the list for unusedTime. A writer with a commit after the list has seen it, and that its content is old.
func (o *origin) Compact(ctx context.Context, at workspace.Point, files func() []workspace.Entry) (workspace.Point, error) {
	if at.Depth < maxDepth && at.Dropped < maxDropped {
		return at, nil
	}
	all := files()
	if at.Depth < maxDepth && at.Dropped < maxDropped+sizeOf(all) {
		return at, nil
	}
	return o.compact(ctx, at, all)
}

func sizeOf(files []workspace.Entry) (size int64) {
	for _, e := range files {
		size += e.Size
	}
	return size
}

func (o *origin) compact(ctx context.Context, at workspace.Point, files []workspace.Entry) (workspace.Point, error) {
	before, err := o.unusedBefore(ctx)
	if err != nil {
		return at, err
	}
	parts, err := o.unusedNow(ctx, files)
	if err != nil {
		return at, err
	}
	unused := map[string]int64{}
	for name := range parts {
		unused[name] = before[name]
	}
	h := head{id: newID(), marks: isWhole}
	if len(files) == 0 {
		h.marks |= isEmpty
	}
	now, first, err := o.append(ctx, at.Tail, h, content{After: at.ID, Entries: files, Unused: unused})
	if errors.Is(err, workspace.ErrOutdated) { // the next one does it
		return at, nil
	}
	if err != nil {
		return at, err
	}
	if err := o.log.Trim(ctx, o.key, first-1); err != nil {
		return now, storeError(err)
	}
	return now, o.removeUnused(ctx, parts, before)
}

// unusedBefore returns the contents that were on the last list of unused ones, and since when.
func (o *origin) unusedBefore(ctx context.Context) (map[string]int64, error) {
	var r reader
	for e, err := range o.log.Read(ctx, o.key, 0) {
		if err != nil {
			return nil, storeError(err)
		}
		c, err := r.add(e)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		for name, since := range c.Unused {
			if since == 0 {
				c.Unused[name] = c.last.Time.UnixMilli()
			}
		}
		return c.Unused, nil // later commits have no list
	}
	return nil, nil
}

// unusedNow returns the parts of contents that no file has, by the names of the contents.
func (o *origin) unusedNow(ctx context.Context, files []workspace.Entry) (map[string][]store.Key, error) {
	used := map[string]bool{}
	for _, e := range files {
		used[e.Hash+" "+e.Ref] = true
	}
	keys, err := o.contents.KeysUnder(ctx, o.key)
	if err != nil {
		return nil, storeError(err)
	}
	parts := map[string][]store.Key{}
	for _, key := range keys {
		if len(key) != 5 {
			continue
		}
		if name := key[2] + " " + key[3]; !used[name] {
			parts[name] = append(parts[name], key)
		}
	}
	return parts, nil
}

// removeUnused removes the contents that have been unused for long enough.
func (o *origin) removeUnused(ctx context.Context, parts map[string][]store.Key, since map[string]int64) error {
	last, err := o.log.Last(ctx, o.key) // its time is that of the servers
	if err != nil {
		return storeError(err)
	}
	for name, keys := range parts {
		if begun := since[name]; begun == 0 || last.Time.Sub(time.UnixMilli(begun)) < unusedTime {
			continue
		}
		for _, key := range keys {
			if err := o.contents.Remove(ctx, key); err != nil {
				return storeError(err)
			}
		}
	}
	return nil
}
