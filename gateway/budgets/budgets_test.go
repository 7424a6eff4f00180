package budgets_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/budgets"
	"sallyport/gateway/toolcall"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// settings are settings that a test may change.
type settings struct{ atomic.Pointer[config.Config] }

func withBudgets(all ...config.Budget) *settings {
	s := &settings{}
	s.set(all...)
	return s
}

func (s *settings) set(all ...config.Budget) {
	c := config.Default()
	c.Budgets = all
	s.Store(&c)
}

func open(t *testing.T, o budgets.Options) *budgets.Budgets {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	b, err := budgets.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// guard is the end of a chain as in the gateway: a demand of a budget becomes a refusal.
func guard(ctx context.Context, c tool.Call) (tool.Result, error) {
	_, v := toolcall.Demanded(ctx, toolcall.Verdict{Action: "allow"})
	if c.Tool.Name == "denied" {
		v = toolcall.Verdict{Action: "deny", Message: "policy"}
	}
	if v.Action == "deny" {
		return tool.Result{}, v.DenyError()
	}
	return budgets.CountMade(func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil })(ctx, c)
}

func call(b *budgets.Budgets, who, name string) error {
	_, err := b.Middleware(guard)(tool.WithPrincipal(context.Background(), who), tool.Call{Tool: tool.ID{Upstream: "crm", Name: name}})
	return err
}

func program(b *budgets.Budgets, who string) (*budgets.Program, error) {
	return b.Begin(tool.WithPrincipal(context.Background(), who))
}

// mustRefuse fails unless err is a refusal that must not be retried, with all texts.
func mustRefuse(t *testing.T, err error, texts ...string) {
	t.Helper()
	e := tool.AsError(err)
	if err == nil || e.Kind != tool.Limit || e.Retryable {
		t.Fatalf("the error is %v, want a limit", err)
	}
	for _, text := range texts {
		if !strings.Contains(e.Error(), text) {
			t.Errorf("the error has no %q: %s", text, e)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCalls: each principal has its own count, a call that the policy denies is not counted, and the next day is a new one.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC
		var refused []budgets.Refusal
		b := open(t, budgets.Options{
			Settings:  withBudgets(config.Budget{Name: "ci", Principals: []string{"token:ci-*", "bob"}, Calls: 2}),
			OnRefusal: func(_ context.Context, r budgets.Refusal) { refused = append(refused, r) },
		})
		defer b.Close()
		time.Sleep(19 * time.Hour)
		for range 3 {
			must(t, call(b, "oauth:ada", "get")) // no budget
			if e := tool.AsError(call(b, "token:ci-1", "denied")); e.Kind != tool.Denied {
				t.Fatal(e)
			}
		}
		for _, who := range []string{"token:ci-1", "token:ci-2", "token:bob"} {
			must(t, call(b, who, "get"))
			must(t, call(b, who, "get"))
			mustRefuse(t, call(b, who, "get"), `budget "ci" is used up: 2 of 2 calls today`, "at 00:00 UTC, in 5 h; do not try again today: tell the user")
			must(t, call(b, who, tool.ListResources))
		}
		if len(refused) != 3 || refused[0] != (budgets.Refusal{Budget: "ci", Principal: "token:ci-1", Resource: budgets.Calls}) {
			t.Errorf("refused: %v", refused)
		}
		time.Sleep(5 * time.Hour)
		must(t, call(b, "token:ci-1", "get"))
	})
}

// TestGroupsAndShared: a budget of groups applies to members, and to principals whose groups are unknown; a shared one has one count.
func TestGroupsAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		directory := access.NewDirectory()
		directory.Set("oauth:ada", []string{"sales"}, time.Now())
		directory.Set("oauth:bob", []string{"sales"}, time.Now())
		directory.Set("oauth:eve", []string{"ops"}, time.Now())
		s := withBudgets(config.Budget{Name: "team", Groups: []string{"sales"}, Calls: 3, Shared: true}, config.Budget{Name: "each", Calls: 5})
		b := open(t, budgets.Options{Settings: s, Directory: directory})
		defer b.Close()
		for _, who := range []string{"oauth:ada", "oauth:bob", "oauth:unknown"} {
			must(t, call(b, who, "get"))
		}
		mustRefuse(t, call(b, "oauth:ada", "get"), `"team" is used up: 3 of 3`)
		for range 5 {
			must(t, call(b, "oauth:eve", "get"))
			must(t, call(b, "token:x/y", "get"))
		}
		mustRefuse(t, call(b, "oauth:eve", "get"), `"each" is used up: 5 of 5`)
		s.set(config.Budget{Name: "team", Groups: []string{"sales"}, Calls: 4, Shared: true}, config.Budget{Name: "each", Calls: 6}) // other limits, the same counts
		must(t, call(b, "oauth:ada", "get"))
		mustRefuse(t, call(b, "oauth:bob", "get"), `"team" is used up: 4 of 4`)
		must(t, call(b, "oauth:eve", "get"))

		report := func(ctx context.Context) (all []string) {
			r, err := b.BudgetReport(ctx)
			must(t, err)
			for _, row := range r.Budgets {
				all = append(all, fmt.Sprintf("%s %s %v %g/%g", row.Budget, row.Principal, row.Shared, row.Calls.Used, row.Calls.Limit))
			}
			return all
		}
		if got := report(tool.WithPrincipal(t.Context(), "oauth:bob")); !slices.Equal(got, []string{"team  true 4/4", "each oauth:bob false 1/6"}) {
			t.Errorf("of bob: %q", got)
		}
		if got := report(tool.WithPrincipal(t.Context(), "oauth:eve")); !slices.Equal(got, []string{"each oauth:eve false 6/6"}) {
			t.Errorf("of eve: %q", got)
		}
		if got := report(tool.WithOperator(t.Context(), "op")); len(got) != 6 || got[0] != "each oauth:eve false 6/6" || got[1] != "team  true 4/4" {
			t.Errorf("of all: %q", got)
		}
	})
}

// TestPrograms: programs are counted unless they did not run; the rest of the processor time limits a program.
func TestPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, budgets.Options{Settings: withBudgets(config.Budget{Name: "b", Programs: 3, CPU: 90 * time.Second})})
		defer b.Close()
		p, err := program(b, "ann")
		must(t, err)
		if got := p.Limit(time.Minute); got != time.Minute {
			t.Errorf("the limit is %s", got)
		}
		p.End(80 * time.Second)
		p.Undo() // too late
		p, err = program(b, "ann")
		must(t, err)
		p.Undo()
		p, err = program(b, "ann")
		must(t, err)
		limit := p.Limit(time.Minute)
		if note := p.Note(limit); limit != 10*time.Second || !strings.Contains(note, `the rest of the processor time in budget "b"`) {
			t.Errorf("the limit is %s: %q", limit, note)
		}
		p.End(10_100 * time.Millisecond)
		_, err = program(b, "ann")
		mustRefuse(t, err, "90.1 of 90 s of processor time today")
		for range 3 {
			p, err = program(b, "bob")
			must(t, err)
			p.End(0)
		}
		_, err = program(b, "bob")
		mustRefuse(t, err, "3 of 3 programs today")
		var none *budgets.Program
		if none.End(1); none.Limit(7) != 7 || none.Note(7) != "" {
			t.Error("a program without budgets has a limit")
		}
	})
}

func TestMoney(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, budgets.Options{Settings: withBudgets(config.Budget{Name: "m", Money: 1.5})})
		defer b.Close()
		must(t, b.MoneyLeft(t.Context(), "ann"))
		b.Spend("ann", 1.2)
		must(t, b.MoneyLeft(t.Context(), "ann"))
		b.Spend("ann", 0.4)
		mustRefuse(t, b.MoneyLeft(t.Context(), "ann"), "1.6 of 1.5 money today")
		must(t, b.MoneyLeft(t.Context(), "bob"))
	})
}

// TestGatewaysOfOneStore: two gateways that share a store count together: exactly where calls are spread over time, and with at most
// one step too many in a burst.
func TestGatewaysOfOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := store.Memory()
		defer records.Close()
		s := withBudgets(config.Budget{Name: "all", Calls: 100, Shared: true})
		var gateways []*budgets.Budgets
		for range 2 {
			b := open(t, budgets.Options{Settings: s, Records: records})
			b.Share()
			gateways = append(gateways, b)
		}
		made := 0
		for i := range 200 {
			if call(gateways[i%2], fmt.Sprint("p", i%5), "get") == nil {
				made++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if made != 100 {
			t.Errorf("%d calls were made, want 100", made)
		}
		var last int64
		for range 50 {
			time.Sleep(24 * time.Hour)
			if last = burst(gateways); last < 100 || last > 116 {
				t.Errorf("%d calls were made in a burst, want 100 to 116", last)
			}
		}
		for _, b := range gateways {
			must(t, b.Close())
		}
		r, err := open(t, budgets.Options{Settings: s, Records: records}).BudgetReport(tool.WithOperator(t.Context(), "op"))
		if err != nil || len(r.Budgets) != 1 || int64(r.Budgets[0].Calls.Used) != last {
			t.Errorf("stored: %+v, %v, want %d", r, err, last)
		}
	})
}

// burst makes 400 calls at once, and returns how many were allowed.
func burst(gateways []*budgets.Budgets) int64 {
	var allowed atomic.Int64
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for range 50 {
				if call(gateways[i%len(gateways)], "p", "get") == nil {
					allowed.Add(1)
				}
			}
		})
	}
	work.Wait()
	return allowed.Load()
}

// TestUnreadable: without the counts nothing is allowed; without budgets nothing is read.
func TestUnreadable(t *testing.T) {
	records := store.Memory()
	s := withBudgets(config.Budget{Name: "b", Calls: 5})
	b := open(t, budgets.Options{Settings: s, Records: records})
	must(t, records.Close())
	if e := tool.AsError(call(b, "ann", "get")); e.Kind != tool.Internal {
		t.Errorf("the error is %v", e)
	}
	s.set()
	must(t, call(b, "ann", "get"))
}

const childDir = "BUDGETS_TEST_DIR"

// TestMain runs as the gateway of TestKilled, which kills itself.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		records, err := store.Open(dir, nil)
		if err != nil {
			panic(err)
		}
		b, err := budgets.Open(budgets.Options{Settings: limitOf10(), Records: records, Logger: slog.Default()})
		if err != nil {
			panic(err)
		}
		for i := range 8 {
			if i == 5 {
				time.Sleep(budgets.Interval + budgets.Interval/2)
			}
			if err := call(b, "ann", "get"); err != nil {
				panic(err)
			}
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // at once: an interval later, all calls are stored
	}
	os.Exit(m.Run())
}

func limitOf10() *settings { return withBudgets(config.Budget{Name: "b", Calls: 10}) }

// TestKilled: a gateway that is killed loses at most what it counted within an interval, and one that is closed nothing.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir, "GORACE=atexit_sleep_ms=0")
	if out, err := child.CombinedOutput(); err == nil || child.ProcessState.ExitCode() != -1 {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
	made := 0
	for range 2 {
		records, err := store.Open(dir, &store.Options{LockTimeout: 5 * time.Second})
		must(t, err)
		b := open(t, budgets.Options{Settings: limitOf10(), Records: records})
		for call(b, "ann", "get") == nil {
			if made++; made == 1 {
				break
			}
		}
		must(t, b.Close())
		must(t, records.Close())
	}
	if made < 3 || made > 5 { // 5 to 7 were stored
		t.Errorf("%d calls were allowed after the kill, want 3 to 5", made)
	}
}
