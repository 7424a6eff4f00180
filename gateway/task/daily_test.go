package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/budgets"
	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/gateway/task"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// clock is the time of a test. The store, which is real, does not work in a bubble of synctest.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(by)
}

// slow is a gateway whose programs take 12 minutes of a clock, without one until they are stopped, and call nothing.
type slow struct{ clock *clock }

func (slow) Search(context.Context, toolsearch.Request) (toolsearch.Found, error) {
	return toolsearch.Found{}, nil
}

func (slow) FindUpstream(_ context.Context, name string) (string, error) { return name, nil }

func (s slow) Execute(ctx context.Context, p execution.Program) (execution.Result, error) {
	if s.clock == nil {
		<-ctx.Done()
		return execution.Result{}, context.Cause(ctx)
	}
	s.clock.advance(12 * time.Minute)
	done := execution.Result{ID: p.ID}
	done.Status = "ok"
	return done, nil
}

func (slow) Record(context.Context, string) (history.Record, error) {
	return history.Record{}, errors.New("none")
}

// sampled is a client whose model says two texts, the second one for ever.
func sampled(first, then string) tool.Peer {
	n := 0
	return peer(func(string, json.RawMessage) (json.RawMessage, error) {
		if n++; n > 1 {
			first = then
		}
		return json.Marshal(map[string]any{"role": "assistant", "model": "theirs", "content": map[string]any{"type": "text", "text": first}})
	})
}

// TestDailyBudgets: what the tasks of a principal used in a day, in tokens, money and time, refuses its next task, also after
// a restart; not the task of another one, not one by rules unless its time is used up, and not on the next day.
func TestDailyBudgets(t *testing.T) {
	for _, c := range []struct {
		name  string
		daily config.DailyTasks
		says  string
		rules task.Status
	}{
		{"tokens", config.DailyTasks{Tokens: 1000}, "of 1000 tokens (tasks.daily.tokens sets the limit)", task.Refused},
		{"money", config.DailyTasks{Money: 0.05}, "of 0.05 (tasks.daily.money sets the limit)", task.Refused},
		{"time", config.DailyTasks{Time: 20 * time.Minute}, "today's tasks took 24m0s of 20m0s (tasks.daily.time sets the limit)", task.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBudget(t, c.daily)
			b.within(t, func(tasks *task.Tasks) { useUp(t, tasks, c.says) })
			b.within(t, func(tasks *task.Tasks) { usedUp(t, tasks, b.clock, c.says, c.rules) })
		})
	}
}

// budget is what a restart leaves.
type budget struct {
	cfg   config.Config
	dir   string
	clock *clock
}

func newBudget(t *testing.T, daily config.DailyTasks) *budget {
	t.Helper()
	b := &budget{cfg: config.Default(), dir: t.TempDir(), clock: &clock{at: time.Now().UTC().Truncate(24 * time.Hour).Add(time.Hour)}}
	b.cfg.Tasks.Daily, b.cfg.Tasks.Time = daily, time.Hour
	b.cfg.Models = map[string]config.LanguageModel{"client": {API: config.APISampling, Answer: 500, Timeout: time.Hour, Price: config.ModelPrice{Input: 50, Output: 100}}}
	return b
}

// within opens the tasks on the records of before.
func (b *budget) within(t *testing.T, use func(tasks *task.Tasks)) {
	t.Helper()
	records, err := store.Open(b.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := task.Options{Gateway: slow{b.clock}, Settings: settings{&b.cfg}, Records: records}
	if b.clock != nil {
		opts.Now = b.clock.now
	}
	tasks, err := task.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	use(tasks)
	if err := errors.Join(tasks.Close(), records.Close()); err != nil {
		t.Error(err)
	}
}

func brew(t *testing.T, tasks *task.Tasks, who string, noModel bool) task.Task {
	t.Helper()
	done, err := tasks.Run(tool.WithPrincipal(t.Context(), who), task.Request{Task: "Make coffee", NoModel: noModel, Peer: sampled(block("python", "1"), block("answer", "ok"))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// useUp uses up the budget of a principal; the last task is cut off.
func useUp(t *testing.T, tasks *task.Tasks, says string) {
	t.Helper()
	if first := brew(t, tasks, "ann", false); first.Status != task.Done {
		t.Fatalf("the first task: %+v", first)
	}
	_, key, found := strings.Cut(says, "(")
	if !found {
		key = says
	}
	for range 10 {
		if done := brew(t, tasks, "ann", false); done.Status == task.Failed {
			if !strings.HasSuffix(done.Error, key) || len(done.Turns) == 0 && !strings.Contains(done.Error, says) {
				t.Errorf("the task that uses it up: %+v", done)
			}
			return
		}
	}
	t.Error("the budget was not used up")
}

func usedUp(t *testing.T, tasks *task.Tasks, now *clock, says string, byRules task.Status) {
	t.Helper()
	done := brew(t, tasks, "ann", false)
	if done.Status != task.Failed || done.Kind != string(tool.Limit) || !strings.Contains(done.Error, says) || len(done.Turns) != 0 {
		t.Errorf("after a restart: %s, %d turns: %s", done.Status, len(done.Turns), done.Error)
	}
	if done := brew(t, tasks, "ann", true); done.Status != byRules {
		t.Errorf("by rules: %+v", done)
	}
	if done := brew(t, tasks, "bob", false); done.Status != task.Done {
		t.Errorf("another principal: %+v", done)
	}
	now.advance(24 * time.Hour)
	if done := brew(t, tasks, "ann", false); done.Status != task.Done {
		t.Errorf("the next day: %+v", done)
	}
}

// TestMoneyBudget: what tasks cost counts in the budgets, whose refusal ends a task.
func TestMoneyBudget(t *testing.T) {
	b := newBudget(t, config.DailyTasks{})
	b.cfg.Budgets = []config.Budget{{Name: "models", Principals: []string{"ann"}, Money: 0.05}}
	records := store.Memory()
	counts, err := budgets.Open(budgets.Options{Settings: settings{&b.cfg}, Records: records, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := task.Open(task.Options{Gateway: slow{b.clock}, Settings: settings{&b.cfg}, Records: records, Budgets: counts, Now: b.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	useUp(t, tasks, "today: tell the user)")
	done := brew(t, tasks, "ann", false)
	if says := `budget "models" is used up: `; done.Status != task.Failed || done.Kind != string(tool.Limit) || !strings.Contains(done.Error, says) || len(done.Turns) != 0 {
		t.Errorf("%s, %d turns: %s", done.Status, len(done.Turns), done.Error)
	}
	if done := brew(t, tasks, "bob", false); done.Status != task.Done {
		t.Errorf("another principal: %+v", done)
	}
	if err := errors.Join(tasks.Close(), counts.Close(), records.Close()); err != nil {
		t.Error(err)
	}
}

// TestDailyTime: a task ends when the time of the day is used up, in the middle of a program.
func TestDailyTime(t *testing.T) {
	b := newBudget(t, config.DailyTasks{Time: 100 * time.Millisecond})
	b.clock = nil
	b.within(t, func(tasks *task.Tasks) {
		for _, says := range []string{"today's tasks took 100ms (tasks.daily.time sets the limit)", "of 100ms (tasks.daily.time sets the limit)"} {
			if done := brew(t, tasks, "ann", false); done.Status != task.Failed || done.Kind != string(tool.Limit) || !strings.HasSuffix(done.Error, says) {
				t.Errorf("%+v", done)
			}
		}
	})
}
