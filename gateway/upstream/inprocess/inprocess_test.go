package inprocess

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestCanceled checks that a canceled call has no result, also if a client reads and the tool returns one.
func TestCanceled(t *testing.T) {
	t.Parallel()
	for range 100 { // a response that is possible wins half of the time
		ctx, cancel := context.WithCancel(t.Context())
		c := Server{Call: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			cancel()
			<-ctx.Done()
			return json.RawMessage(`{"isError": true, "content": []}`), nil
		}}.Connect()
		read := make(chan jsonrpc.Message, 1)
		go func() {
			msg, _ := c.Read(t.Context())
			read <- msg
		}()
		id, err := jsonrpc.MakeID("1")
		if err != nil {
			t.Fatal(err)
		}
		err = c.Write(ctx, &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`{"name": "wait"}`)})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("Write: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if msg := <-read; msg != nil {
			t.Fatalf("a canceled call has a response: %v", msg)
		}
	}
}
