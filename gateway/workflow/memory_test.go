package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sallyport/gateway/workflow"
	"sallyport/internal/store"
)

// A loop of 1,000 passes with large results inside takes room for what its passes come to, no more: while it runs, and when
// somebody goes on with it after most of them.
func TestLoopHoldsNoMore(t *testing.T) { //nolint:paralleltest // it looks at the whole heap
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 8 << 10
	const passes, size = 1000, 32 << 10 // 32 MiB in all
	records, err := store.Open(filepath.Join(t.TempDir(), "records"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	m := &largeTool{text: strings.Repeat("x", size), stopAt: 899}
	d := standard()
	d.tools["large"] = m.call
	texts := map[string]string{"flow": fmt.Sprintf(`
steps:
  - id: each
    for_each: "${{ lists.range(%d) }}"
    steps: [{id: large, tool: t.large, interrupted: retry, with: {n: "${{ item }}"}, output: "${{ output.text }}"}, {id: small, tool: t.echo, with: {n: "${{ size(steps.large.output) }}"}, output: "${{ output.n }}"}]
outputs: {sum: {value: "${{ math.greatest(steps.each.output) * size(steps.each.output) }}"}}`, passes)}
	first := engine(t, d, workflow.Options{Records: records}, texts)
	begun, err := first.Start(t.Context(), workflow.Start{Workflow: "flow"})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, first, begun.ID, "each[899].large")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	m.stopAt = -1
	second := engine(t, d, workflow.Options{Records: records}, texts)
	r, err := second.Wait(t.Context(), begun.ID)
	if want := fmt.Sprintf(`{"sum":%d}`, passes*size); err != nil || string(r.Outputs) != want {
		t.Fatalf("it comes to %s, not %s: %+v, %v", r.Outputs, want, r.Error, err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if m.most > 4<<20 {
		t.Errorf("the heap had %d KiB, of results of %d KiB", m.most>>10, passes*size>>10)
	}
}

// largeTool answers with a large text, looks at the heap now and then, and hangs at one of its calls.
type largeTool struct {
	text   string
	stopAt int
	most   int64
}

func (m *largeTool) call(ctx context.Context, args map[string]any) (any, error) {
	n := int(args["n"].(float64))
	if n%150 == 149 {
		m.most = max(m.most, liveHeap())
	}
	if n == m.stopAt {
		return hang(ctx, nil)
	}
	return map[string]any{"text": m.text}, nil
}

// liveHeap is about how much of the heap is in use, but for what the engine of the store has, which keeps what was written in the last seconds.
func liveHeap() (sum int64) {
	runtime.GC()
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 20_000)
	n, _ := runtime.MemProfile(records, false)
	for _, r := range records[:n] {
		if !strings.Contains(frames(r.Stack()), "nats-io") {
			sum += r.InUseBytes()
		}
	}
	return sum
}

func frames(stack []uintptr) string {
	var names strings.Builder
	for all := runtime.CallersFrames(stack); ; {
		frame, more := all.Next()
		names.WriteString(frame.Function + "\n")
		if !more {
			return names.String()
		}
	}
}

var errFound = errors.New("found")

// waitFor waits until a step has begun.
func waitFor(t *testing.T, e *workflow.Engine, run, step string) {
	t.Helper()
	err := e.Follow(t.Context(), run, 0, func(event workflow.Event) error {
		if event.Kind == workflow.Began && event.Path == step {
			return errFound
		}
		return nil
	})
	if !errors.Is(err, errFound) {
		t.Fatal(err)
	}
}
