package bridge_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"sallyport/internal/tool"
	"sallyport/sandbox/bridge"
)

// script is a stream that says what it was given, and takes everything.
type script struct{ io.Reader }

func (script) Write(p []byte) (int, error)      { return len(p), nil }
func (script) Close() error                     { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }

// FuzzRelay: whatever the other end says is a program and answers, or an error.
func FuzzRelay(f *testing.F) {
	message := func(kind byte, data string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(data))), data...)
	}
	run := message(1, `{"type":"run","code":"1","value_limit":5,"workspace":{"bytes":1,"files":1}}`)
	f.Add(append(append(message(1, `{"type":"files","entries":[{"path":"a","size":3}]}`), message(2, "abc")...), run...))
	f.Add(append(run, message(1, `{"type":"result","id":1,"value":{"json":1}}`)...))
	f.Add(append(run, message(1, `{"type":"error","id":1,"error":{"kind":"denied","message":"no"}}`)...))
	f.Add(append(run, message(1, `{"type":"progress","id":1,"progress":1}`)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		relay := bridge.NewRelay(bridge.NewMessages(script{bytes.NewReader(data)}, nil), t.TempDir())
		defer relay.Close()
		if _, err := relay.ReadProgram(); err != nil {
			return
		}
		for file, err := range relay.Workspace().Files() {
			if err != nil || file.Folder {
				continue
			}
			opened, err := relay.Workspace().Open(file.Path)
			if err != nil {
				t.Fatalf("%q is listed, and not there: %v", file.Path, err)
			}
			if n, err := io.Copy(io.Discard, opened.Content); err != nil || n != file.Size {
				t.Errorf("%q has %d of %d bytes: %v", file.Path, n, file.Size, err)
			}
		}
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = relay.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "a", Name: "b"}}) })
		_ = relay.Serve()
		calls.Wait()
	})
}

// TestRelayOutlived: calls through a relay end when the other end goes away, and none waits for ever.
func TestRelayOutlived(t *testing.T) {
	near, far := net.Pipe()
	relay := bridge.NewRelay(bridge.NewMessages(near, nil), "")
	var serving sync.WaitGroup
	serving.Go(func() { _ = relay.Serve() })
	failed := make(chan error, 1)
	go func() {
		_, err := relay.Call(context.Background(), tool.Call{Tool: tool.ID{Upstream: "a", Name: "b"}})
		failed <- err
	}()
	if _, err := io.ReadFull(far, make([]byte, 5)); err != nil { // it has been asked
		t.Fatal(err)
	}
	far.Close()
	if err := <-failed; err == nil || tool.AsError(err).Kind != tool.Canceled {
		t.Errorf("%v", err)
	}
	serving.Wait()
	if _, err := relay.Call(context.Background(), tool.Call{}); err == nil {
		t.Error("a call is made to nobody")
	}
}
