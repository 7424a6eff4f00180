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

// onceFor is for how long what a step did once is not done again.
const onceFor = 30 * 24 * time.Hour

// keeping is where the output of a step is taken from, and put. The zero value is nowhere.
type keeping struct {
	in    *runlog.Results
	key   string
	until time.Duration
	must  bool // that it cannot be kept fails the step
}

// keptRun keeps the results of steps and finds them again.
type keptRun struct{ *run }

// keeps says by the step's rules where its output is kept.
func (r keptRun) keeps(ctx context.Context, f *frame, n *node) (keeping, error) {
	switch {
	case n.idempotency != nil:
		v, err := f.eval(ctx, n.idempotency, nil)
		if err != nil {
			return keeping{}, err
		}
		if v == nil || v == "" {
			return keeping{}, &tool.Error{Kind: tool.Invalid, Message: "the idempotency_key comes to nothing"}
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

// cacheKey is what must be the same for an output to be taken over.
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

// does is what a step does, so that another tool or program has another key.
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

// keyOf is a key that is unique to the principal, the workflow and the step.
func (r keptRun) keyOf(n *node, kind string, v any) (string, error) {
	data, err := json.Marshal([]any{kind, r.started.Principal, r.started.Workflow, n.ID.Text, v})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// kept takes over what was kept.
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

// keep keeps what a step came to.
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

// notKept is the error of a step when its output must be kept and cannot be; for other steps it is logged.
func (r keptRun) notKept(k keeping, err error) error {
	if err == nil {
		return nil
	}
	if k.must {
		return &tool.Error{Kind: tool.Internal, Message: "that the step was done cannot be kept, or not be read", Hint: "the operator's log says why", Err: err}
	}
	r.engine.log.Warn("output of a step is not kept", "run", r.id, "error", err)
	return nil
}

// turns lets of several steps that are done once by the same key one go at a time. The zero value is ready.
type turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when it is the next one's turn
}

// take waits for the turn of a step. Call leave after it.
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
