package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/gateway/upstream/upstreamtest"
	"sallyport/internal/testutil"
)

// stockVar marks the processes of this test, and what they start.
const stockVar = "GATEWAY_TEST_STOCK"

// stock is what a trap could leave behind.
type stock struct{ goroutines, files, processes int }

func takeStock(t *testing.T) stock {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return stock{goroutines: runtime.NumGoroutine(), files: len(files), processes: len(ours())}
}

// stockLabel marks the goroutines of one test, and what they start.
const stockLabel = "hostile"

// mark is the value of [stockVar] for the processes of one test; "" is for any.
func mark(test string) string { return fmt.Sprintf("%d %s", os.Getpid(), test) }

// markedPIDs are the processes with a mark that begins so.
func markedPIDs(mark string) (pids []string) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(stockVar+"="+mark)) {
			pids = append(pids, path)
		}
	}
	return pids
}

// countLabelled counts the stacks of the goroutines of one test.
func countLabelled(test string) (n int) {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		panic(err)
	}
	label := fmt.Sprintf("# labels: {%q:%q}", stockLabel, test)
	for record := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(record, label) {
			n++
		}
	}
	return n
}

// wantNothingLeft waits until no goroutine and no process of the test is left.
func wantNothingLeft(t *testing.T, test string) {
	t.Helper()
	testutil.Eventually(t, "nothing of "+test+" is left", 10*time.Second, func() bool {
		return countLabelled(test) == 0 && len(markedPIDs(mark(test)+"\x00")) == 0
	})
}

// endStrays waits until only so many processes of the test are left, and kills those.
func endStrays(t *testing.T, test string, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	var left []string
	testutil.Eventually(t, "only strays are left", 10*time.Second, func() bool {
		left = markedPIDs(mark(test) + "\x00")
		return len(left) == n
	})
	for _, path := range left {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// ours are the processes with our mark, zombies too.
func ours() (pids []string) {
	pids = markedPIDs(mark(""))
	children, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range children {
		data, _ := os.ReadFile(path)
		pids = append(pids, strings.Fields(string(data))...)
	}
	return pids
}

// compare waits until everything is back to where it was.
func (before stock) compare(t *testing.T) {
	t.Helper()
	var now stock
	testutil.Eventually(t, "all is back to where it was", 10*time.Second, func() bool {
		now = takeStock(t)
		return now.goroutines <= before.goroutines && now.files <= before.files && now.processes <= before.processes
	})
}

// calmStock waits for what earlier tests have left to close, which takes its time on a busy machine.
func calmStock(t *testing.T) (calm stock) {
	t.Helper()
	same := 0
	testutil.Eventually(t, "the tests before have closed what they had", 10*time.Second, func() bool {
		runtime.GC() // some is closed when nobody has it any more
		now := takeStock(t)
		if same++; now != calm {
			calm, same = now, 0
		}
		return same == 5
	})
	return calm
}

// TestStockSeesWhatIsLeft proves that the count above can fail.
func TestStockSeesWhatIsLeft(t *testing.T) {
	before := calmStock(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), upstreamtest.Var+"="+upstreamtest.Good, stockVar+"="+mark(t.Name()))
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	quit := make(chan struct{})
	var idle sync.WaitGroup
	pprof.Do(t.Context(), pprof.Labels(stockLabel, t.Name()), func(context.Context) { idle.Go(func() { <-quit }) })
	if countLabelled(t.Name()) != 1 || len(markedPIDs(mark(t.Name())+"\x00")) != 1 || countLabelled("other") != 0 || len(markedPIDs(mark("other"))) != 0 {
		t.Errorf("%d goroutines, processes %v", countLabelled(t.Name()), markedPIDs(mark(t.Name())))
	}
	if now := takeStock(t); now.goroutines <= before.goroutines || now.files <= before.files || now.processes <= before.processes {
		t.Errorf("%+v after %+v", now, before)
	}
	close(quit)
	idle.Wait()
	_ = input.Close()
	_ = child.Wait()
	before.compare(t)
}
