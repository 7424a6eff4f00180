//go:build linux

package sandbox

import (
	"testing"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
)

// TestTheKernelIsQuicker: a sandbox that the kernel kills for its memory before we have seen it is out
// of memory, and has not crashed.
func TestTheKernelIsQuicker(t *testing.T) {
	h, err := New(Options{Runsc: testutil.Runsc(t), Guest: runtime.Guest(), State: testutil.ShortDir(t), Logger: testutil.Logger(t)})
	must(t, err)
	defer func() { must(t, h.Close()) }()
	if !h.cgroups.limitsMemory {
		t.Skip("no cgroup that limits memory")
	}
	job := Job{ID: "e-1", Interpreter: Python, Code: "b = []\nwhile True: b.append(bytearray(4 << 20))", Limits: DefaultLimits()}
	h.cgroups.headroom = 200<<20 - job.Limits.Memory
	outcome, err := h.Run(t.Context(), job, noTools{})
	if err != nil || outcome.Status != OutOfMemory {
		t.Errorf("%+v, %v", outcome, err)
	}
	next, err := h.Run(t.Context(), Job{ID: "e-2", Interpreter: Python, Code: "6 * 7", Limits: DefaultLimits()}, noTools{})
	if err != nil || next.Status != OK {
		t.Errorf("the next program: %+v, %v", next, err)
	}
}
