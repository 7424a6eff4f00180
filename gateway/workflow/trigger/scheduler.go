package trigger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// syncEvery is the interval at which stored schedules are synchronized with the definitions.
const syncEvery = 20 * time.Second

// Scheduler starts runs by the schedules of the definitions. Of the gateways that share a store, one does at a time.
type Scheduler struct {
	opts      Options
	schedules *store.Schedules
	store     *store.Store
	// registered has the schedules of the last sync by key, so that unchanged ones are not written again.
	registered map[string]bool
}

// NewScheduler returns the clock for a store.
func NewScheduler(in *store.Store, opts Options) (*Scheduler, error) {
	schedules, err := in.Schedules("workflows")
	return &Scheduler{opts: opts.withDefaults(), schedules: schedules, store: in}, err
}

// retryAfter is the delay after an error of the store.
const retryAfter = 10 * time.Second

// Run starts due runs until ctx ends, and returns its error. A schedule that was due while no clock ran starts once. After an
// error of the store it retries; only a closed store or gateway ends it earlier.
func (c *Scheduler) Run(ctx context.Context) error {
	for {
		err := c.store.Lead(ctx, "schedules", c.listen)
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, errClosing) {
			return err
		}
		c.opts.Logger.Error("cannot receive workflow schedules, will retry", "error", err)
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen starts runs until ctx ends or an error occurs.
func (c *Scheduler) listen(ctx context.Context) error {
	c.registered = nil // another gateway may have changed the schedules
	if err := c.sync(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		cancel(c.syncPeriodically(ctx))
	}()
	err := c.schedules.Listen(ctx, func(f store.Firing) error { return c.fire(ctx, f) })
	cancel(err)
	<-synced
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

func (c *Scheduler) syncPeriodically(ctx context.Context) error {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := c.sync(ctx); err != nil {
			return err
		}
	}
}

// scheduleKeys returns the keys of a definition's schedules: by content, so that a changed schedule is a new one and a
// reordered one is not, and by number for equal ones.
func scheduleKeys(d *spec.Definition) (keys []store.Key) {
	seen := map[string]int{}
	for _, s := range d.On.Schedules {
		when := s.Cron.Text
		if s.Every > 0 {
			when = "@every " + s.Every.String()
		}
		says := when + "\x00" + s.Zone.Text
		keys = append(keys, store.Key{d.Name, when, s.Zone.Text, fmt.Sprint(seen[says])})
		seen[says]++
	}
	return keys
}

func keyText(key store.Key) string { return strings.Join(key, "\x00") }

// sync adds and removes schedules to match the definitions. Unchanged ones keep their due times.
func (c *Scheduler) sync(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, d := range c.opts.Definitions() {
		for i, key := range scheduleKeys(d) {
			wanted[keyText(key)] = true
			if c.registered[keyText(key)] {
				continue
			}
			if err := c.add(ctx, key, d.On.Schedules[i]); err != nil {
				return fmt.Errorf("schedule workflow %s: %w", d.Name, err)
			}
		}
	}
	if c.registered != nil && maps.Equal(wanted, c.registered) {
		return nil
	}
	for s, err := range c.schedules.List(ctx) {
		if err == nil && !wanted[keyText(s.Key)] {
			err = c.schedules.Remove(ctx, s.Key)
		}
		if err != nil {
			return fmt.Errorf("remove schedules: %w", err)
		}
	}
	c.registered = wanted
	return nil
}

// add adds a schedule. It logs an invalid one, which lint reports too.
func (c *Scheduler) add(ctx context.Context, key store.Key, s spec.Schedule) (err error) {
	if s.Every > 0 {
		err = c.schedules.Every(ctx, key, s.Every, nil)
	} else {
		err = c.schedules.Cron(ctx, key, s.Cron.Text, s.Zone.Text, nil)
	}
	if errors.Is(err, store.ErrInvalid) {
		c.opts.Logger.Error("a workflow has an invalid schedule", "workflow", key[0], "line", s.Line, "error", err)
		return nil
	}
	return err
}

// errClosing is returned when the engine is closing: due runs are left to the next clock.
var errClosing = errors.New("no more runs are started")

// fire starts a run. A failed start is logged and not retried, unless the engine is closing.
func (c *Scheduler) fire(ctx context.Context, f store.Firing) error {
	run, err := c.start(ctx, f)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, store.ErrClosed), err != nil && tool.AsError(err).Kind == tool.Canceled:
		return fmt.Errorf("%w: %w", errClosing, err)
	case err != nil:
		c.opts.Logger.Error("a workflow could not be started by its schedule", "workflow", f.Key[0], "due", f.Time, "error", err)
	case run.ID != "":
		c.opts.Logger.Info("a workflow was started by its schedule", "workflow", f.Key[0], "due", f.Time, "run", run.ID)
	}
	return nil
}

func (c *Scheduler) start(ctx context.Context, f store.Firing) (workflow.Run, error) {
	d := c.opts.find(f.Key[0])
	if d == nil {
		return workflow.Run{}, nil // the next sync removes it
	}
	for i, key := range scheduleKeys(d) {
		if keyText(key) != keyText(f.Key) {
			continue
		}
		inputs, err := c.opts.inputs(ctx, d, d.On.Schedules[i].With, nil)
		if err != nil {
			return workflow.Run{}, err
		}
		return c.opts.Starter.Start(ctx, workflow.Start{
			Workflow: d.Name, Inputs: inputs, Trigger: "schedule",
			Key: fmt.Sprintf("schedule %q at %s", f.Key[1:], f.Time.UTC().Format(time.RFC3339Nano)),
		})
	}
	return workflow.Run{}, nil
}
