package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"sallyport/internal/tool"
)

// FuzzAnnotate: the bytes of params and results come through, and what is no message stays.
func FuzzAnnotate(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"sallyport/raw":"x"},"n":9007199254740993}}`))
	f.Add([]byte(`[{"result":{"role":"x"}},1]`))
	f.Add([]byte(`{"params":{"_meta":1}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		got := annotate(message)
		var before, after object
		if json.Unmarshal(message, &before) != nil || before == nil {
			return
		}
		if json.Unmarshal(got, &after) != nil {
			t.Fatalf("%s became %s", message, got)
		}
		var params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		var was object
		if json.Unmarshal(before["params"], &was) != nil || was == nil || json.Unmarshal(after["params"], &params) != nil {
			return
		}
		if _, isObject := was["_meta"]; isObject && json.Unmarshal(was["_meta"], new(object)) != nil {
			return // is refused by the SDK
		}
		var raw string
		_ = json.Unmarshal(params.Meta[rawKey], &raw)
		if want := bytes.ToValidUTF8(before["params"], []byte("\ufffd")); raw != string(want) && raw != string(before["params"]) && json.Valid([]byte(want)) && !bytes.Contains(message, []byte{0xff}) {
			if !strings.ContainsRune(raw, '\ufffd') {
				t.Errorf("%s carries %s", before["params"], raw)
			}
		}
	})
}

// TestPendingCallsEnd when nobody comes back for them, and are not many.
func TestPendingCallsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPendingStore(nil)
		ended := make(chan error, 100)
		newTalk := func() *pendingCall {
			ctx, end := context.WithCancelCause(context.Background())
			context.AfterFunc(ctx, func() { ended <- context.Cause(ctx) })
			return &pendingCall{cancel: end}
		}
		first, err := p.add(newTalk(), "ada", []byte("b"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.resume(first, []byte("c")); err == nil {
			t.Error("resumed by another request")
		}
		for range maxPending - 1 {
			if _, err := p.add(newTalk(), "ada", []byte("b")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.add(newTalk(), "ada", []byte("b")); tool.AsError(err).Kind != tool.Limit {
			t.Errorf("one more: %v", err)
		}
		if _, err := p.add(newTalk(), "bob", []byte("b")); err != nil {
			t.Errorf("another's: %v", err)
		}
		if talk, err := p.resume(first, []byte("b")); talk == nil || err != nil {
			t.Errorf("resume: %v, %v", talk, err)
		}
		time.Sleep(pendingTimeout + time.Second)
		synctest.Wait()
		if len(ended) != maxPending || !errors.Is(<-ended, errNoAnswer) || len(p.entries)+len(p.count) > 0 {
			t.Errorf("%d ended, %d wait", len(ended), len(p.entries))
		}
		if _, err := p.add(newTalk(), "ada", []byte("b")); err != nil {
			t.Fatal(err)
		}
		p.close()
		if _, err := p.add(newTalk(), "ada", []byte("b")); !errors.Is(err, errStopping) {
			t.Errorf("after the end: %v", err)
		}
		for state, want := range map[string]bool{"": false, "theirs": false, "sallyport.x": true} {
			_, err := p.resume(state, []byte("b"))
			if e, refused := errors.AsType[*jsonrpc.Error](err); refused != want || refused && e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("state %q: %v", state, err)
			}
		}
	})
}

// TestAbandonedSessions lose their calls, unless their client comes back.
func TestAbandonedSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(slog.New(slog.DiscardHandler))
		defer c.close()
		contexts := map[string]context.Context{}
		for _, session := range []string{"gone", "back", "other"} {
			ctx, end := context.WithCancelCause(t.Context())
			contexts[session] = ctx
			defer c.begin(sessionKey{id: session}, end)()
		}
		c.onDisconnect(sessionKey{id: "gone"})
		c.onDisconnect(sessionKey{id: "back"})
		c.onReconnect(sessionKey{"finance", "gone"}) // the same id at an endpoint is another session
		time.Sleep(reconnectTimeout / 2)
		c.onReconnect(sessionKey{id: "back"})
		time.Sleep(reconnectTimeout)
		synctest.Wait()
		if got := context.Cause(contexts["gone"]); !errors.Is(got, errDisconnected) {
			t.Errorf("gone: %v", got)
		}
		if err := fmt.Sprint(contexts["back"].Err(), contexts["other"].Err()); err != "<nil> <nil>" {
			t.Errorf("the others: %v", err)
		}
	})
}
