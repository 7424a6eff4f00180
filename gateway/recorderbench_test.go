package gateway

import (
	"strings"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// BenchmarkRecord is what a record adds to an execution: a program of 2 KB with 10 calls, written through to the disk.
func BenchmarkRecord(b *testing.B) {
	records, err := store.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = records.Close() }()
	j, err := openRecorder(Options{Records: records}, nil)
	if err != nil {
		b.Fatal(err)
	}
	calls := &toolcall.List{}
	for b.Loop() {
		*calls = toolcall.List{}
		for range 10 {
			calls.Begin(&toolcall.Attempt{Tool: tool.ID{Upstream: "a", Name: "b"}, Definition: "digest", Arguments: strings.Repeat("a", 64)})
		}
		r := Record{ID: execution.NewID(), Code: strings.Repeat("print(1)\n", 230)}
		r.Calls, r.Made = calls.All()
		if err := j.write(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
