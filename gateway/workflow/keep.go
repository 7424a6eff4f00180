package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"sallyport/gateway/workflow/runlog"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// onceFor is how long the result of an idempotency key is reused.
const onceFor = 30 * 24 * time.Hour

// keeping is the cache entry for the output of a step. The zero value is no cache.
type keeping struct {
	in    *runlog.Results
	key   string
	until time.Duration
	must  bool // a cache error fails the step
}

// keptRun stores and reuses the outputs of steps.
type keptRun struct{ *run }

// keeps returns the cache entry for a step, by its "cache" or "idempotency_key".
func (r keptRun) keeps(ctx context.Context, f *frame, n *node) (keeping, error) {
	switch {
	case n.idempotency != nil:
		v, err := f.eval(ctx, n.idempotency, nil)
		if err != nil {
			return keeping{}, err
		}
		if v == nil || v == "" {
			return keeping{}, &tool.Error{Kind: tool.Invalid, Message: "the idempotency_key is empty"}
		}
		key, err := r.keyOf(n, "once", v)
		return keeping{r.engine.logs.Once(), key, onceFor, true}, err
	case n.Cache != nil:
		v, err := r.cacheKey(ctx, f, n)
		if err != nil {
			return keeping{}, err
		}
		key, err := r.keyOf(n, "cache", v)
		return keeping{r.engine.logs.Cache(), key, n.Cache.For, false}, err
	}
	return keeping{}, nil
}

// cacheKey returns the value that must be equal for an output to be reused.
func (r keptRun) cacheKey(ctx context.Context, f *frame, n *node) (any, error) {
	if n.key != nil {
		return f.eval(ctx, n.key, nil)
	}
	var with any
	var err error
	if n.with != nil {
		if with, err = f.eval(ctx, n.with, nil); err != nil {
			return nil, err
		}
	}
	return []any{with, r.does(n)}, nil
}

// does identifies the action of a step, so that another tool or program has another key.
func (r keptRun) does(n *node) any {
	switch do := n.Do.(type) {
	case *spec.Tool:
		id, err := tool.ParseID(do.Name.Text)
		if err == nil && r.engine.opts.Catalog != nil {
			if known, ok := r.engine.opts.Catalog.Tool(id); ok {
				return []any{do.Name.Text, known.Digest()}
			}
		}
		return do.Name.Text
	case *spec.Code:
		return []any{do.Language, do.Environment.Text, do.Text.Text}
	case *spec.Skill:
		return do.Name.Text
	}
	return r.program.Digest
}

// keyOf returns a hash of the value, the principal, the workflow and the step.
func (r keptRun) keyOf(n *node, kind string, v any) (string, error) {
	data, err := json.Marshal([]any{kind, r.started.Principal, r.started.Workflow, n.ID.Text, v})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// kept returns the cached output of a step, and whether there is one.
func (r keptRun) kept(ctx context.Context, k keeping) (result, bool, error) {
	if k.in == nil {
		return result{}, false, nil
	}
	raw, err := k.in.Kept(ctx, k.key)
	if errors.Is(err, store.ErrNotFound) {
		return result{}, false, nil
	}
	if err == nil {
		var value any
		if value, err = decode(raw); err == nil {
			return result{status: outcomeCached, value: value, raw: raw}, true, nil
		}
	}
	return result{}, false, r.notKept(k, err)
}

// keep caches the output of a step.
func (r keptRun) keep(ctx context.Context, k keeping, out result) error {
	if k.in == nil || out.status != outcomeOK {
		return nil
	}
	raw, err := out.json()
	if err == nil {
		err = k.in.Keep(context.WithoutCancel(ctx), k.key, raw, time.Now().Add(k.until))
	}
	return r.notKept(k, err)
}

// notKept returns an error for the step if its cache entry is required, else it logs err.
func (r keptRun) notKept(k keeping, err error) error {
	if err == nil {
		return nil
	}
	if k.must {
		return &tool.Error{Kind: tool.Internal, Message: "cannot write or read the record of the finished step", Hint: "the operator's log says why", Err: err}
	}
	r.engine.log.Warn("cannot cache the output of a step", "run", r.id, "error", err)
	return nil
}

// turns is a mutex per key: steps with the same idempotency key run one at a time. The zero value is ready to use.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed on unlock
}

// take acquires the lock of a key; leave releases it.
func (t *turns) take(ctx context.Context, k keeping) (leave func(), err error) {
	if !k.must {
		return func() {}, nil
	}
	for {
		t.mu.Lock()
		before := t.busy[k.key]
		if before == nil {
			mine := make(chan struct{})
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			t.busy[k.key] = mine
			t.mu.Unlock()
			return func() { t.leave(k.key, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (t *turns) leave(key string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, key)
	close(mine)
}
