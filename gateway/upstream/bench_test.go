package upstream_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
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
	testutil.Measure(b, func() error {
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
	testutil.Measure(b, func() error {
		_, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(benchArgs)})
		return err
	})
}
