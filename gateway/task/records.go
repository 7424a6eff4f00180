package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

const (
	// maxTasks and maxTaskBytes bound the records of all principals. The oldest are dropped.
	maxTasks, maxTaskBytes = 5_000, 64 << 20
	// maxSpent bounds the records of what principals used on a day.
	maxSpent = 20_000
)

// records are the stored tasks, and what principals used by day.
type records struct {
	tasks, spent *store.Bucket
	cancels      *store.Requests // to the gateway that works on a task
	in           *store.Store
	breaker      *store.Breaker
	log          *slog.Logger
	now          func() time.Time
}

func openRecords(in *store.Store, keep time.Duration, log *slog.Logger) (r *records, err error) {
	if in == nil {
		in = store.Memory()
	}
	r = &records{log: log, in: in, breaker: in.Breaker()}
	r.tasks, err = in.Bucket("tasks", store.Limits{Records: maxTasks, Age: keep, Bytes: maxTaskBytes})
	if err != nil {
		return nil, err
	}
	r.spent, err = in.Bucket("task_days", store.Limits{Records: maxSpent, Age: 3 * 24 * time.Hour, Bytes: 8 << 20})
	if err == nil {
		r.cancels, err = in.Requests("cancel_task")
	}
	return r, err
}

// record is a stored task.
type record struct {
	Task

	// Gateway works on it while it runs; "" in a store of one process.
	Gateway string `json:"gateway,omitempty"`
}

// put writes a record. If the record cannot be written, the task continues and the log has the reason.
func (r *records) put(ctx context.Context, t Task) {
	if err := r.write(ctx, t); err != nil {
		r.log.ErrorContext(ctx, "task was not recorded", "task", t.ID, "error", err)
	}
}

func (r *records) write(ctx context.Context, t Task) error {
	data, err := json.Marshal(record{t, r.in.Self()})
	if err != nil {
		return err
	}
	return r.breaker.Do(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := r.tasks.Put(ctx, history.KeyOf(t.Principal, t.ID), data)
		return err
	})
}

func noTask(id string) error {
	return &tool.Error{Kind: tool.NotFound, Message: "there is no task " + sanitize.Line(id, 60), Hint: "use the id of one of your last tasks"}
}

// show returns a record of the caller, or of any principal for an operator. One that runs at no gateway was interrupted.
func (r *records) show(ctx context.Context, id string) (Task, error) {
	if !IDPattern.MatchString(id) {
		return Task{}, noTask(id)
	}
	if tool.Operator(ctx) == "" {
		entry, err := r.tasks.Get(ctx, history.KeyOf(tool.Principal(ctx), id))
		if errors.Is(err, store.ErrNotFound) {
			return Task{}, noTask(id)
		}
		if err != nil {
			return Task{}, toolcall.Unreadable(ctx, r.log, err)
		}
		return r.decode(ctx, entry)
	}
	all, err := r.list(ctx, maxTasks)
	if err != nil {
		return Task{}, err
	}
	if i := slices.IndexFunc(all, func(t Task) bool { return t.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Task{}, noTask(id)
}

func (r *records) decode(ctx context.Context, entry store.Entry) (Task, error) {
	var t record
	err := json.Unmarshal(entry.Value, &t)
	if t.Status == Running && (t.Gateway == r.in.Self() || !r.in.Alive(ctx, t.Gateway)) {
		t.Status, t.Error = Failed, "its process ended"
	}
	return t.Task, err
}

// list returns records, the newest first.
func (r *records) list(ctx context.Context, limit int) (all []Task, err error) {
	whose := history.KeyOf(tool.Principal(ctx))
	if tool.Operator(ctx) != "" {
		whose = nil
	}
	for entry, err := range r.tasks.List(ctx, whose) {
		var one Task
		if err == nil {
			one, err = r.decode(ctx, entry)
		}
		if err != nil {
			return nil, toolcall.Unreadable(ctx, r.log, err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Task) int { return b.Begun.Compare(a.Begun) })
	return all[:min(limit, len(all))], nil
}

// spent is what a principal's tasks used on a day.
type spent struct {
	Tokens int           `json:"tokens"`
	Price  float64       `json:"price"`
	Time   time.Duration `json:"time"`
}

func dayKey(principal string, at time.Time) store.Key {
	return history.KeyOf(principal, at.UTC().Format(time.DateOnly))
}

// today returns what a principal's tasks used today.
func (r *records) today(ctx context.Context, principal string) (s spent, revision uint64, err error) {
	entry, err := r.spent.Get(ctx, dayKey(principal, r.now()))
	if errors.Is(err, store.ErrNotFound) {
		return s, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(entry.Value, &s)
	}
	return s, entry.Revision, err
}

// maxConflicts is how often an addition is tried again after a concurrent one.
const maxConflicts = 20

// add adds to what a principal's tasks used today.
func (r *records) add(ctx context.Context, principal string, u models.Usage, price float64, took time.Duration) error {
	return r.breaker.Do(context.WithoutCancel(ctx), func(ctx context.Context) error { return r.tryAdd(ctx, principal, u, price, took) })
}

func (r *records) tryAdd(ctx context.Context, principal string, u models.Usage, price float64, took time.Duration) error {
	var last error
	for range maxConflicts {
		now, revision, err := r.today(ctx, principal)
		if err != nil {
			return err
		}
		now.Tokens, now.Price, now.Time = now.Tokens+u.Tokens(), now.Price+price, now.Time+took
		data, err := json.Marshal(now)
		if err != nil {
			return err
		}
		if revision == 0 {
			_, last = r.spent.Create(ctx, dayKey(principal, r.now()), data)
		} else {
			_, last = r.spent.Update(ctx, dayKey(principal, r.now()), data, revision)
		}
		if !errors.Is(last, store.ErrConflict) {
			return last
		}
	}
	return cmp.Or(last, store.ErrConflict)
}
