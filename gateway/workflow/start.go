package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"sallyport/gateway/approvals"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow/runlog"
	"sallyport/internal/store"
	"sallyport/internal/telemetry"
	"sallyport/internal/tool"
)

// Start starts a run on behalf of the caller in ctx. The run is logged when Start returns, and continues after ctx ends; its
// Peer is asked until ctx ends. Errors are *tool.Error: invalid with all problems of the inputs, limit for too many runs.
func (e *Engine) Start(ctx context.Context, s Start) (Run, error) {
	if err := e.ready(ctx); err != nil {
		return Run{}, err
	}
	d, err := e.definition(s.Workflow)
	if err != nil {
		return Run{}, err
	}
	p, err := e.programs.get(d)
	if err != nil {
		return Run{}, err
	}
	started, err := e.prepare(ctx, p, s.Inputs, s.Peer)
	if err != nil {
		return Run{}, err
	}
	key := s.Key
	if key != "" {
		key = fmt.Sprintf("%q %q %q", tool.Principal(ctx), s.Workflow, s.Key)
	}
	started.ID, started.Trigger, started.Principal, started.Parent = runlog.NewID(key), s.Trigger, tool.Principal(ctx), s.Parent
	started.Workspace, started.Endpoint = tool.Workspace(ctx), tool.Endpoint(ctx)
	if e.opts.Labels != nil {
		if read := slices.Concat(e.opts.Labels.SessionOrigins(ctx), s.Read); len(read) > 0 {
			if started.Read, err = json.Marshal(read); err != nil {
				return Run{}, err
			}
		}
	}
	if c, ok := e.opts.Labels.(carrier); ok {
		c.ShareSession(ctx, identity(ctx, started))
	}
	return e.create(ctx, p, started, approvals.SerialPeer(ctx, s.Peer), nil)
}

// ready waits until the stored runs are loaded.
func (e *Engine) ready(ctx context.Context) error {
	select {
	case <-e.queue.loaded:
	case <-ctx.Done():
		return tool.AsError(context.Cause(ctx))
	case <-e.base.Done():
	}
	if err := toolcall.Unavailable(e.opts.Records.Available()); err != nil {
		return err
	}
	if e.base.Err() != nil {
		return &tool.Error{Kind: tool.Canceled, Message: "the gateway is closed"}
	}
	return nil
}

// create logs a new run, with the events more, and queues it.
func (e *Engine) create(ctx context.Context, p *program, started Started, peer tool.Peer, more []Event) (Run, error) {
	if run, err := e.load(ctx, started.ID); err == nil {
		return run, nil // the start is repeated
	}
	leave, ok := e.queue.admit(p.Definition)
	if !ok {
		return Run{}, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("workflow %s has %d runs already, its limit", p.Name, p.Concurrency.Limit), Hint: "wait until one ends"}
	}
	now := e.now().UTC()
	run := Run{ID: started.ID, Workflow: p.Name, Digest: p.Digest, Status: Queued, Trigger: started.Trigger, Principal: started.Principal,
		Parent: started.Parent, Of: started.Of, Inputs: started.Inputs, Started: now}
	events := append([]Event{{Kind: Created, Time: now, Start: &started}}, more...)
	if err := e.claims.claim(ctx, run.ID); err != nil {
		return Run{}, err
	}
	w, err := e.logs.Create(context.WithoutCancel(ctx), run, events...)
	if err != nil {
		e.claims.release(run.ID)
	}
	if errors.Is(err, store.ErrConflict) {
		return e.load(ctx, started.ID)
	}
	if err != nil {
		return Run{}, recordError(e.log, started.ID, err)
	}
	h := newRunHistory()
	for _, event := range events {
		h.add(event)
	}
	for _, other := range leave {
		if err := other.stop(ctx, "a newer run, "+run.ID); err != nil {
			e.log.Error("run cannot be canceled", "run", other.id, "error", err)
		}
	}
	e.queue.put(&live{id: run.ID, workflow: p.Name, limit: p.Concurrency, state: newState(run, e.recordStatus), began: make(chan struct{}), ended: make(chan struct{}), program: p, writer: w, history: h, peer: peer, place: telemetry.TraceContextOf(ctx)})
	return run, nil
}

// recordError returns the error for a run that cannot be recorded, and logs it.
func recordError(log *slog.Logger, id string, err error) error {
	if down := toolcall.Unavailable(err); down != nil {
		return down
	}
	log.Error("run cannot be recorded", "run", id, "error", err)
	if errors.Is(err, store.ErrFull) {
		return &tool.Error{Kind: tool.Limit, Message: "no space for more runs", Hint: "cancel runs that are not needed: sallyport workflow runs", Err: err}
	}
	return &tool.Error{Kind: tool.Internal, Message: "the run cannot be recorded", Hint: "the operator's log says why", Err: err}
}
