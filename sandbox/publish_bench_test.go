//go:build linux

package sandbox

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"testing"

	"sallyport/internal/testutil"
)

// BenchmarkPublish writes as many files as 1,800 tools in two languages make, of
// their usual size: to a fresh folder, where nothing differs, and where one
// upstream of 36 has changed.
func BenchmarkPublish(b *testing.B) {
	files, changed := map[string][]byte{}, map[string][]byte{}
	for i := range 3600 {
		path := fmt.Sprintf("up%d/tool%d.py", i%36, i)
		files[path] = bytes.Repeat([]byte{byte(i)}, 2500)
		if changed[path] = files[path]; i%36 == 0 {
			changed[path] = append(changed[path], '.')
		}
	}
	b.Run("fresh", func(b *testing.B) {
		defer testutil.ReportCPU(b)()
		for b.Loop() {
			b.StopTimer()
			h := &Host{dir: b.TempDir()}
			b.StartTimer()
			publish(b, h, files)
			b.StopTimer()
			if err := os.RemoveAll(h.dir); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	h := &Host{dir: b.TempDir()}
	publish(b, h, files)
	b.Run("same", func(b *testing.B) {
		defer testutil.ReportCPU(b)()
		for b.Loop() {
			publish(b, h, files)
		}
	})
	b.Run("one upstream", func(b *testing.B) {
		defer testutil.ReportCPU(b)()
		both := []map[string][]byte{maps.Clone(changed), files}
		for i := 0; b.Loop(); i++ {
			publish(b, h, both[i%2])
		}
	})
}

func publish(b *testing.B, h *Host, files map[string][]byte) {
	b.Helper()
	if err := h.Publish(files); err != nil {
		b.Fatal(err)
	}
}
