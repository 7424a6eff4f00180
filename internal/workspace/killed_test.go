package workspace_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/workspace"
)

// killedVar names the workspace that a process of its own writes until it is killed.
const killedVar = "WORKSPACE_TEST_KILLED"

// generation is five files that all say the same number, long enough that writing them takes a while.
func generation(n int) iter.Seq2[workspace.File, error] {
	text := bytes.Repeat(fmt.Appendf(nil, "%08d", n), 20_000)
	var files []workspace.File
	for i := range 5 {
		files = append(files, workspace.File{Path: fmt.Sprintf("d%d/f", i), Size: int64(len(text)), Content: io.NopCloser(bytes.NewReader(text))})
	}
	return workspace.Changes(files...)
}

// TestKilled: a process that is killed while it writes leaves each file old or new, never half, and
// what it had said was written is there.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killedVar); dir != "" {
		writeForEver(t, dir)
	}
	t.Parallel()
	dir := t.TempDir()
	for range 12 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killedVar+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 9)
		if _, err := io.ReadFull(out, first); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(rand.N(30*time.Millisecond), func() { _ = cmd.Process.Kill() })
		said, _ := io.ReadAll(out) // until it is dead
		_ = cmd.Wait()
		wantWhole(t, dir, 1+len(said)/9)
		if t.Failed() {
			return
		}
	}
}

// writeForEver writes one generation after the other, and says which ones are there.
func writeForEver(t *testing.T, dir string) {
	t.Helper()
	d, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		if _, err := d.Update(generation(n)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%08d\n", n)
	}
}

// wantWhole opens the workspace as the next process does. said is how many generations were told of.
func wantWhole(t *testing.T, dir string, said int) {
	t.Helper()
	d, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if left, _ := filepath.Glob(filepath.Join(dir, ".sallyport-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	for i := range 5 {
		data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("d%d", i), "f"))
		var n int
		if _, scanErr := fmt.Sscanf(string(data[:min(8, len(data))]), "%d", &n); err != nil || scanErr != nil || !bytes.Equal(data, bytes.Repeat(data[:8], 20_000)) || n < said-1 {
			t.Errorf("file %d after %d: %v, %d bytes, begins %.16q", i, said, err, len(data), data)
		}
	}
}
