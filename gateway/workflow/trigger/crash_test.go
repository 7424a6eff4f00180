package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/trigger"
	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/tool"
)

// crashDir is the variable that makes the test binary a gateway with a clock, which ends when that has started a run.
const crashDir = "TRIGGER_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		_, err := tick(context.Background(), dir, storetest.Killer())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// unsupportedCaller is a gateway whose tools are of no use.
type unsupportedCaller struct{}

func (unsupportedCaller) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.ErrUnsupported
}

func (unsupportedCaller) Execute(context.Context, execution.Program) (execution.Result, error) {
	return execution.Result{}, errors.ErrUnsupported
}

// recordingStarter is an engine whose starts are noted in a file before they are made.
type recordingStarter struct {
	*workflow.Engine

	path string
}

func (n recordingStarter) Start(ctx context.Context, s workflow.Start) (workflow.Run, error) {
	f, err := os.OpenFile(n.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return workflow.Run{}, err
	}
	_, err = f.WriteString(s.Key + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return workflow.Run{}, err
	}
	return n.Engine.Start(ctx, s)
}

// tick serves a directory until its clock has seen to a schedule that is due each second, and returns the runs there are.
func tick(ctx context.Context, dir string, onWrite func(string, bool)) ([]workflow.Run, error) {
	d, err := spec.Parse("beat.yaml", []byte("on: {schedule: [{every: 1s}]}\nsteps: [{id: w, wait: {for: 1ms}}]"), nil)
	if err != nil {
		return nil, err
	}
	records, err := store.Open(dir, &store.Options{OnWrite: onWrite})
	if err != nil {
		return nil, err
	}
	definitions := func() []*spec.Definition { return []*spec.Definition{d} }
	e, err := workflow.Open(unsupportedCaller{}, &workflow.Options{Records: records, Definitions: definitions})
	if err != nil {
		return nil, err
	}
	clock, err := trigger.NewScheduler(records, trigger.Options{Definitions: definitions, Starter: recordingStarter{e, filepath.Join(dir, "starts")}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- clock.Run(ctx) }()
	schedules, err := records.Schedules("workflows")
	if err != nil {
		return nil, err
	}
	for began := time.Now(); !nextDueMoved(ctx, schedules, began); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-ended
	runs, err := e.Runs(context.Background(), workflow.Filter{})
	return runs, errors.Join(err, e.Close(), records.Close())
}

// nextDueMoved reports whether all schedules have been seen to since a time.
func nextDueMoved(ctx context.Context, schedules *store.Schedules, began time.Time) bool {
	for s, err := range schedules.List(ctx) {
		return err == nil && s.Next.Sub(began) > 1200*time.Millisecond
	}
	return false
}

// TestKilledClock: a gateway is killed at each of its writes while its clock starts a run; each time that is due has one run in the end.
func TestKilledClock(t *testing.T) {
	t.Parallel()
	var work sync.WaitGroup // of processes that mostly wait
	for n := 1; n <= 8; n++ {
		dir := t.TempDir()
		work.Go(func() {
			if err := killedAt(t.Context(), dir, n); err != nil {
				t.Errorf("killed at write %d: %v", n, err)
			}
		})
	}
	work.Wait()
}

func killedAt(ctx context.Context, dir string, n int) error {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, storetest.KillAt(n, false), "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		return fmt.Errorf("it was not killed: %w: %s", err, out)
	}
	runs, err := tick(ctx, dir, nil)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "starts"))
	if err != nil {
		return err
	}
	starts := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(starts)
	if due := slices.Compact(starts); len(due) != len(runs) {
		return fmt.Errorf("%d runs for %d times that were due: %q, %+v", len(runs), len(due), due, runs)
	}
	return nil
}
