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

// idempotencyTTL is how long the result of an idempotency key is reused.
const idempotencyTTL = 30 * 24 * time.Hour

// outputCache is the cache entry for the output of a step. The zero value is no cache.
type outputCache struct {
	results  *runlog.Results
	key      string
	ttl      time.Duration
	required bool // a cache error fails the step
}

// cacheRun stores and reuses the outputs of steps.
type cacheRun struct{ *run }

// cacheFor returns the cache entry for a step, by its "cache" or "idempotency_key".
func (r cacheRun) cacheFor(ctx context.Context, f *frame, n *node) (outputCache, error) {
	switch {
	case n.idempotency != nil:
		v, err := f.eval(ctx, n.idempotency, nil)
		if err != nil {
			return outputCache{}, err
		}
		if v == nil || v == "" {
			return outputCache{}, &tool.Error{Kind: tool.Invalid, Message: "the idempotency_key is empty"}
		}
		key, err := r.hashKey(n, "once", v)
		return outputCache{r.engine.logs.Once(), key, idempotencyTTL, true}, err
	case n.Cache != nil:
		v, err := r.cacheKey(ctx, f, n)
		if err != nil {
			return outputCache{}, err
		}
		key, err := r.hashKey(n, "cache", v)
		return outputCache{r.engine.logs.Cache(), key, n.Cache.For, false}, err
	}
	return outputCache{}, nil
}

// cacheKey returns the value that must be equal for an output to be reused.
func (r cacheRun) cacheKey(ctx context.Context, f *frame, n *node) (any, error) {
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
	return []any{with, r.actionKey(n)}, nil
}

// actionKey identifies the action of a step, so that another tool or program has another key.
func (r cacheRun) actionKey(n *node) any {
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
	case *spec.Plugin:
		return do.Name.Text
	case *spec.Task:
		return []any{do.Words.Text.Text, string(do.Returns), do.Model.Text}
	}
	return r.program.Digest
}

// hashKey returns a hash of the value, the principal, the workflow and the step.
func (r cacheRun) hashKey(n *node, kind string, v any) (string, error) {
	data, err := json.Marshal([]any{kind, r.started.Principal, r.started.Workflow, n.ID.Text, v})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// load returns the cached output of a step, and whether there is one.
func (r cacheRun) load(ctx context.Context, k outputCache) (result, bool, error) {
	if k.results == nil {
		return result{}, false, nil
	}
	raw, err := k.results.Load(ctx, k.key)
	if errors.Is(err, store.ErrNotFound) {
		return result{}, false, nil
	}
	if err == nil {
		var value any
		if value, err = decode(raw); err == nil {
			return result{status: outcomeCached, value: value, raw: raw}, true, nil
		}
	}
	return result{}, false, r.storageError(k, err)
}

// save caches the output of a step.
func (r cacheRun) save(ctx context.Context, k outputCache, out result) error {
	if k.results == nil || out.status != outcomeOK {
		return nil
	}
	raw, err := out.json()
	if err == nil {
		err = k.results.Save(context.WithoutCancel(ctx), k.key, raw, time.Now().Add(k.ttl))
	}
	return r.storageError(k, err)
}

// storageError returns an error for the step if its cache entry is required, else it logs err.
func (r cacheRun) storageError(k outputCache, err error) error {
	if err == nil {
		return nil
	}
	if k.required {
		return &tool.Error{Kind: tool.Internal, Message: "cannot write or read the record of the finished step", Hint: "the operator's log says why", Err: err}
	}
	r.engine.log.Warn("cannot cache the output of a step", "run", r.id, "error", err)
	return nil
}

// keyedMutex is a mutex per key: steps with the same idempotency key run one at a time. The zero value is ready to use.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed on unlock
}

// lock acquires the lock of a key; leave releases it.
func (t *keyedMutex) lock(ctx context.Context, k outputCache) (leave func(), err error) {
	if !k.required {
		return func() {}, nil
	}
	for {
		t.mu.Lock()
		before := t.held[k.key]
		if before == nil {
			mine := make(chan struct{})
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			t.held[k.key] = mine
			t.mu.Unlock()
			return func() { t.unlock(k.key, mine) }, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (t *keyedMutex) unlock(key string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, key)
	close(mine)
}
