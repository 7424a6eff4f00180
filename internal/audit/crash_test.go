//go:build unix

package audit_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/testutil/natscluster"
	"sallyport/internal/testutil/tlstest"
)

// writerDir and fullDir are the variables that make the test binary a writer, and one whose disk is full.
const writerDir, fullDir = "AUDIT_WRITER", "AUDIT_FULL"

func TestMain(m *testing.M) {
	natscluster.Serve()
	var err error
	switch {
	case os.Getenv(writerDir) != "":
		err = write(os.Getenv(writerDir))
	case os.Getenv(fullDir) != "":
		err = fill(os.Getenv(fullDir))
	default:
		os.Exit(tlstest.M{Tests: m}.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write appends until it is killed, and says of each record that it was acknowledged.
func write(dir string) error {
	l, err := audit.Open(dir, &audit.Options{Segment: 20_000, Sync: time.Millisecond})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		name := fmt.Sprintf("p%d.t%d", os.Getpid(), i)
		if err := l.Append(call(name)); err != nil {
			return err
		}
		fmt.Println(name)
	}
}

// TestKilled: two processes append at once and are killed at any moment, again and again: the log is whole, and has
// all that was acknowledged.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for range 6 {
		var mu sync.Mutex
		var work sync.WaitGroup
		for range 2 {
			work.Go(func() {
				lines := killedWriter(t, dir)
				mu.Lock()
				defer mu.Unlock()
				for _, line := range lines {
					acknowledged[line] = true
				}
			})
		}
		work.Wait()
	}
	got := verify(t, dir, nil)
	if !got.OK() {
		t.Errorf("%+v", got)
	}
	for _, r := range records(t, dir) {
		delete(acknowledged, r.Tool)
	}
	if len(acknowledged) > 0 || got.Count < 100 {
		t.Errorf("of %d records %d were acknowledged and are not there", got.Count, len(acknowledged))
	}
	add(t, open(t, dir, nil), call("a.next"))
	if got := verify(t, dir, nil); !got.OK() {
		t.Errorf("%+v", got)
	}
}

func killedWriter(t *testing.T, dir string) (lines []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	limit := 20 + rand.IntN(200)
	for in := bufio.NewScanner(out); in.Scan(); {
		if lines = append(lines, in.Text()); len(lines) == limit {
			time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("the writer ended by itself: %v", err)
	}
	return lines
}

// fill appends until a file cannot grow, then while it cannot, then when it can again.
func fill(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := audit.Open(dir, &audit.Options{Sync: time.Hour})
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1500, Max: limit.Max}); err != nil {
		return err
	}
	written := 0
	for range 20 {
		if err := l.Append(call(fmt.Sprint("a.t", written))); err == nil {
			written++
		} else if !errors.Is(err, syscall.EFBIG) {
			return err
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	fmt.Println(written)
	return errors.Join(l.Append(call("a.last")), l.Close())
}

// TestFull: what the disk has no room for is refused and leaves nothing, and it goes on when there is room again.
func TestFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fullDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := records(t, dir)
	if got := strings.TrimSpace(string(out)); got != fmt.Sprint(len(all)-2) || len(all) < 4 || len(all) > 10 || all[len(all)-1].Tool != "a.last" {
		t.Errorf("%s were acknowledged, %d are there: %s", got, len(all), all[len(all)-1].Line)
	}
	for i, r := range all {
		if r.Kind == audit.LogTorn || i > 0 && i < len(all)-1 && r.Tool != fmt.Sprint("a.t", i-1) {
			t.Errorf("%s", r.Line)
		}
	}
	if got := verify(t, dir, nil); !got.OK() {
		t.Errorf("%+v", got)
	}
}
