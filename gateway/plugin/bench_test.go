package plugin_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// hooked are a tool with a hook that looks at the arguments, and one without.
func hooked(t testing.TB) *house {
	t.Helper()
	h := open(t, "", files{
		"shop/plugin.yaml": "name: shop\nversion: 1.0.0\ntools: [plain, judged]\n", "shop/main.py": "def plain(n: int) -> int:\n    return n\n\njudged = plain\n",
		"rules/plugin.yaml": "name: rules\nversion: 1.0.0\nhooks:\n  - before: [shop.judged]\n    run: judge\n",
		"rules/main.py":     "def judge(tool, arguments):\n    if arguments[\"n\"] < 0:\n        return {\"deny\": \"negative\"}\n",
	})
	h.await("shop.plain")
	h.want("shop.judged", `{"n":1}`, `1`)
	h.refused("shop.judged", `{"n":-1}`, "negative")
	return h
}

// BenchmarkHook measures calls with a hook and without: the difference is what the hook costs.
func BenchmarkHook(b *testing.B) {
	h := hooked(b)
	for _, name := range []string{"shop.plain", "shop.judged"} {
		b.Run(name, func(b *testing.B) {
			call := tool.Call{Tool: mustID(b, name), Args: json.RawMessage(`{"n":1}`)}
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				begun := time.Now()
				if _, err := h.Call(context.Background(), call); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-us")
		})
	}
}

// TestManyHookedCalls makes 10,000 calls with a hook, and looks at the memory of this process and of the plugins.
func TestManyHookedCalls(t *testing.T) {
	h := hooked(t)
	call := tool.Call{Tool: mustID(t, "shop.judged"), Args: json.RawMessage(`{"n":1}`)}
	many := func(n int) {
		t.Helper()
		for range n {
			if _, err := h.Call(context.Background(), call); err != nil {
				t.Fatal(err)
			}
		}
	}
	many(1000)
	heap, guests, goroutines := heapSize(), guestMemory(t), runtime.NumGoroutine()
	begun := time.Now()
	many(10_000)
	t.Logf("10,000 calls in %v", time.Since(begun))
	if after := heapSize(); after > heap+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heap, after)
	}
	if after := guestMemory(t); after > guests+16<<20 {
		t.Errorf("the sandboxes grew from %d to %d bytes", guests, after)
	}
	if after := runtime.NumGoroutine(); after > goroutines+10 {
		t.Errorf("goroutines grew from %d to %d", goroutines, after)
	}
}

func heapSize() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// guestMemory returns the resident memory of the sandboxes of this process, in bytes.
func guestMemory(t *testing.T) (sum int64) {
	t.Helper()
	for _, line := range testutil.Processes(os.Getenv("XDG_RUNTIME_DIR")) {
		status, err := os.ReadFile(filepath.Dir(strings.Fields(line)[0]) + "/statm") // the line begins with /proc/PID/cmdline
		if err != nil {
			continue // it has ended
		}
		pages, _ := strconv.ParseInt(strings.Fields(string(status))[1], 10, 64)
		sum += pages * int64(os.Getpagesize())
	}
	if sum == 0 {
		t.Fatal("no sandbox is found")
	}
	return sum
}
