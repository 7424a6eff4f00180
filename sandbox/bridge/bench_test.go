package bridge_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// BenchmarkRoundTrip is one call from a guest outside of a sandbox: what the bridge itself costs.
func BenchmarkRoundTrip(b *testing.B) {
	h := open(b, answer(`{"ok":true}`), bridge.Limits{Calls: 1 << 40})
	g := connect(b, h)
	b.ResetTimer()
	for i := range b.N {
		g.ask(fmt.Sprintf(`{"type":"call","id":%d,"tool":"up.do","args":{"path":"/tmp/x","limit":10}}`, i))
	}
}

// BenchmarkLargeResult sends results of 10 MB, as JSON of many small values and as bytes.
func BenchmarkLargeResult(b *testing.B) {
	row := `{"id":12345,"name":"some name <b>","tags":["a","b"],"text":"` + strings.Repeat("lorem ipsum ", 20) + `"}`
	structured := []byte("[" + strings.Repeat(row+",", 10<<20/len(row)) + row + "]")
	for name, result := range map[string]tool.Result{
		"json": {Structured: structured},
		"blob": {Content: []tool.Content{{Data: structured, MIME: "application/json"}}},
	} {
		b.Run(name, func(b *testing.B) {
			h := open(b, callerFunc(func(context.Context, tool.Call) (tool.Result, error) { return result, nil }), bridge.Limits{Calls: 1 << 40})
			g := connect(b, h)
			b.SetBytes(int64(len(structured)))
			b.ResetTimer()
			for range b.N {
				g.write(`{"type":"call","id":1,"tool":"up.do"}`)
				g.skip()
			}
		})
	}
}

// skip reads a frame without keeping it: what a guest does with it is not the bridge's cost.
func (g *guest) skip() {
	g.tb.Helper()
	_, reader, err := g.NextReader()
	if err == nil {
		_, err = io.Copy(io.Discard, reader)
	}
	if err != nil {
		g.tb.Fatal(err)
	}
}
