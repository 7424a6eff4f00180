package upstream_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
)

const benchArgs = `{"city":"Lisbon","days":3}`

// BenchmarkCall is one call of a Go server over stdio through a session;
// BenchmarkBareSDK is the same through nothing but the SDK.
func BenchmarkCall(b *testing.B) {
	s := upstream.New(settings(b, "sdk"), nil)
	defer s.Close()
	if err := s.Connect(b.Context()); err != nil {
		b.Fatal(err)
	}
	measure(b, func() error {
		_, err := callContext(b.Context(), s, "echo", benchArgs)
		return err
	})
}

func BenchmarkBareSDK(b *testing.B) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), modeVar+"=sdk")
	client := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil)
	session, err := client.Connect(context.Background(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	measure(b, func() error {
		_, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(benchArgs)})
		return err
	})
}

func measure(b *testing.B, call func() error) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}
