package gateway_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/gateway/upstream/upstreamtest"
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

// ours are the processes with our mark, zombies too.
func ours() (pids []string) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	mark := fmt.Appendf(nil, "%s=%d\x00", stockVar, os.Getpid())
	for _, path := range environments {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, mark) {
			pids = append(pids, path)
		}
	}
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
	eventually(t, "all is back to where it was", 10*time.Second, func() bool {
		now = takeStock(t)
		return now.goroutines <= before.goroutines && now.files <= before.files && now.processes <= before.processes
	})
}

// TestStockSeesWhatIsLeft proves that the count above can fail.
func TestStockSeesWhatIsLeft(t *testing.T) {
	before := takeStock(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), upstreamtest.Var+"="+upstreamtest.Good, stockVar+"="+strconv.Itoa(os.Getpid()))
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	quit := make(chan struct{})
	var idle sync.WaitGroup
	idle.Go(func() { <-quit })
	if now := takeStock(t); now.goroutines <= before.goroutines || now.files <= before.files || now.processes <= before.processes {
		t.Errorf("%+v after %+v", now, before)
	}
	close(quit)
	idle.Wait()
	_ = input.Close()
	_ = child.Wait()
	before.compare(t)
}
