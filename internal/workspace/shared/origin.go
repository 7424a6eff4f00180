package shared

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// origin implements [workspace.Origin].
type origin struct {
	*Workspaces

	key store.Key
}

// Head implements [workspace.Origin].
func (o *origin) Head(ctx context.Context) (workspace.Point, error) {
	last, err := o.log.Last(ctx, o.key)
	if errors.Is(err, store.ErrNotFound) {
		return workspace.Point{}, nil
	}
	if err != nil {
		return workspace.Point{}, storeError(err)
	}
	h, _, err := parse(last.Value)
	switch {
	case err != nil:
		return workspace.Point{}, err
	case h.has(isLast):
		return workspace.Point{Revision: last.Revision, Tail: last.Revision, ID: h.id, Depth: h.depth, Dropped: h.dropped}, nil
	}
	delta, err := o.Since(ctx, workspace.Point{}) // a writer has not finished, or was killed
	return delta.Head, err
}

// maxReads bounds the attempts to read commits while others remove them.
const maxReads = 5

// Since implements [workspace.Origin].
func (o *origin) Since(ctx context.Context, after workspace.Point) (workspace.Delta, error) {
	if after.ID != "" {
		delta, err := o.changes(ctx, after)
		if !errors.Is(err, errGap) {
			return delta, err
		}
	}
	for range maxReads {
		delta, err := o.whole(ctx)
		if !errors.Is(err, errGap) {
			return delta, err
		}
	}
	return workspace.Delta{}, fmt.Errorf("%w: %w", workspace.ErrDamaged, errGap)
}

// changes returns what has changed after a point; errGap if its commit is not in the log.
func (o *origin) changes(ctx context.Context, after workspace.Point) (workspace.Delta, error) {
	delta := workspace.Delta{Head: after}
	begun := false
	err := o.read(ctx, after.Revision, func(e store.Entry, c *commit) error {
		if !begun {
			h, _, err := parse(e.Value)
			if err != nil || e.Revision != after.Revision || h.id != after.ID {
				return errGap
			}
			begun = true
			return nil
		}
		if c == nil {
			return nil
		}
		if c.After != delta.Head.ID {
			return errGap
		}
		if delta.Head = c.point(); !c.has(isWhole) {
			delta.Entries = append(delta.Entries, c.Entries...)
		}
		return nil
	}, &delta.Head.Tail)
	if err == nil && !begun {
		err = errGap
	}
	return delta, err
}

// whole returns all files; errGap if commits were removed during that.
func (o *origin) whole(ctx context.Context) (workspace.Delta, error) {
	delta := workspace.Delta{Whole: true}
	var tail uint64
	err := o.read(ctx, 0, func(_ store.Entry, c *commit) error {
		if c == nil {
			return nil
		}
		switch {
		case c.has(isWhole):
			delta.Entries = nil
		case c.After != delta.Head.ID:
			return errGap
		}
		delta.Head = c.point()
		delta.Entries = append(delta.Entries, c.Entries...)
		return nil
	}, &tail)
	delta.Head.Tail = tail
	return delta, err
}

// read calls do with each record from a revision on, and with the commit that it completes, if any. It sets tail to the last record.
func (o *origin) read(ctx context.Context, from uint64, do func(e store.Entry, c *commit) error, tail *uint64) error {
	var r reader
	for e, err := range o.log.Read(ctx, o.key, from) {
		if err != nil {
			return storeError(err)
		}
		done, err := r.add(e)
		if err == nil {
			err = do(e, done)
		}
		if err != nil {
			return err
		}
		*tail = e.Revision
	}
	return nil
}

// Commit implements [workspace.Origin].
func (o *origin) Commit(ctx context.Context, after workspace.Point, c workspace.Commit) (workspace.Point, error) {
	h := head{id: newID(), depth: after.Depth + 1, dropped: after.Dropped + c.Dropped}
	if c.Empty {
		h.marks |= isEmpty
	}
	at, _, err := o.append(ctx, after.Tail, h, content{After: after.ID, Entries: c.Entries})
	return at, err
}

// append appends a commit after the last record, and returns its first record's revision too.
func (o *origin) append(ctx context.Context, after uint64, h head, c content) (at workspace.Point, first uint64, err error) {
	c.Version = version
	data, err := json.Marshal(c)
	if err != nil {
		return at, 0, err
	}
	marks := h.marks
	for begin := true; begin || len(data) > 0; begin = false {
		n := min(len(data), chunkSize)
		h.marks = marks
		if begin {
			h.marks |= isFirst
		}
		if n == len(data) {
			h.marks |= isLast
		}
		if after, err = o.log.AppendAfter(ctx, o.key, after, h.format(data[:n])); err != nil {
			return at, 0, storeError(err)
		}
		if begin {
			first = after
		}
		data = data[n:]
	}
	return workspace.Point{Revision: after, Tail: after, ID: h.id, Depth: h.depth, Dropped: h.dropped}, first, nil
}

// contentKey returns the key of a part of a content; with -1 that of all parts.
func (o *origin) contentKey(hash, ref string, part int) store.Key {
	key := append(store.Key{}, o.key...)
	key = append(key, hash, ref)
	if part >= 0 {
		key = append(key, strconv.Itoa(part))
	}
	return key
}

// Save implements [workspace.Origin].
func (o *origin) Save(ctx context.Context, hash string, size int64, from io.Reader) (string, error) {
	ref, sum := newID(), sha256.New()
	part := make([]byte, min(size, chunkSize))
	for i, left := 0, size; left > 0; i++ {
		part = part[:min(left, chunkSize)]
		if _, err := io.ReadFull(from, part); err != nil {
			return "", fmt.Errorf("read content: %w", err)
		}
		left -= int64(len(part))
		if _, _ = sum.Write(part); left == 0 && hex.EncodeToString(sum.Sum(nil)) != hash {
			break
		}
		if _, err := o.contents.Put(ctx, o.contentKey(hash, ref, i), part); err != nil {
			return "", storeError(err)
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return "", errors.New("the content has changed while it was read")
	}
	return ref, nil
}

// Fetch implements [workspace.Origin].
func (o *origin) Fetch(ctx context.Context, e workspace.Entry, to io.Writer) error {
	sum := sha256.New()
	left := e.Size
	for i := 0; left > 0; i++ {
		found, err := o.contents.Get(ctx, o.contentKey(e.Hash, e.Ref, i))
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: part %d of a content is missing", workspace.ErrDamaged, i)
		}
		if err != nil {
			return storeError(err)
		}
		if len(found.Value) == 0 || int64(len(found.Value)) > left {
			return fmt.Errorf("%w: part %d of a content has %d bytes", workspace.ErrDamaged, i, len(found.Value))
		}
		left -= int64(len(found.Value))
		if _, err := io.Copy(io.MultiWriter(to, sum), bytes.NewReader(found.Value)); err != nil {
			return err
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != e.Hash {
		return fmt.Errorf("%w: a content is not what was stored", workspace.ErrDamaged)
	}
	return nil
}
