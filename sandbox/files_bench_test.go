//go:build linux

package sandbox_test

import (
	"fmt"
	"testing"
	"time"

	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/internal/workspace"
	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// BenchmarkWorkspace is one program that changes nothing, over workspaces of several sizes: what the files cost.
func BenchmarkWorkspace(b *testing.B) {
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(b), Guest: runtime.Guest(), State: testutil.ShortDir(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	for _, size := range []struct{ files, bytes int }{{0, 0}, {1000, 1000}, {10, 10 << 20}, {2000, 25 << 10}, {49_900, 200}} {
		b.Run(fmt.Sprintf("%dx%d", size.files, size.bytes), func(b *testing.B) {
			ws, err := workspace.Open(b.TempDir(), workspace.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = ws.Close() }()
			fill(b, ws, size.files, size.bytes)
			for b.Loop() {
				job := sandboxtest.Job(sandbox.Python, "1")
				job.Workspace, job.Limits.Timeout = ws, 20*time.Second
				if outcome, err := host.Run(b.Context(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK || len(outcome.Notes) > 0 {
					b.Fatal(err, outcome.Status, outcome.Notes)
				}
			}
		})
	}
}

// BenchmarkMapped is BenchmarkWorkspace over a mapped folder of 2,000 files and 50 MB.
func BenchmarkMapped(b *testing.B) {
	host, err := sandbox.New(sandbox.Options{Runsc: testutil.Runsc(b), Guest: runtime.Guest(), State: testutil.ShortDir(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	folder := b.TempDir()
	ws, err := workspace.Open(folder, workspace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, ws, 2000, 25<<10)
	_ = ws.Close()
	for b.Loop() {
		mapped, err := workspace.OpenMapped(folder, workspace.MappedOptions{Write: true})
		if err != nil {
			b.Fatal(err)
		}
		if err := mapped.Measure(); err != nil {
			b.Fatal(err)
		}
		job := sandboxtest.Job(sandbox.Python, "1")
		job.Workspace, job.Limits.Timeout = mapped, 20*time.Second
		if outcome, err := host.Run(b.Context(), job, sandboxtest.Echo{}); err != nil || outcome.Status != sandbox.OK || len(outcome.Notes) > 0 {
			b.Fatal(err, outcome.Status, outcome.Notes)
		}
		_ = mapped.Close()
	}
}
