package upstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// probePoll is how often we look whether a process has read its input.
const probePoll = 20 * time.Millisecond

// reader is a connection that can tell whether the other side has begun to read.
type reader interface {
	// begun reports whether some of what was written has been read.
	begun() bool
}

// discover sends server/discover, with a limit that the SDK does not have. There
// are servers that ignore methods that they do not know; to the SDK such a
// server hangs until ctx ends, and then there is no time left for initialize.
//
// The clock starts when the server has begun to read its input, not when it was
// started: a slow start is no reason to take a server for an old one. After one
// limit the SDK gets "method not found", and continues with
// initialize over the same connection. After two more without any answer the
// server must be stuck in server/discover; it is started again without.
func (w *wire) discover(ctx context.Context, req *jsonrpc.Request) error {
	select {
	case <-w.heard: // it has answered once, and is asked again in another revision
		return w.below.Write(ctx, req)
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	var silent atomic.Bool
	w.background(func(context.Context) {
		defer cancel()
		w.untilBegun()
		if w.quiet(w.probe) {
			silent.Store(true)
			w.inject(&jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer to server/discover"}})
			cancel() // over HTTP the write below may still be waiting
			if w.quiet(2 * w.probe) {
				w.fail(errStuck)
			}
		}
	})
	err := w.below.Write(ctx, req)
	if err == nil || silent.Load() {
		return nil
	}
	w.hear() // a refusal is an answer
	return err
}

func (w *wire) untilBegun() {
	r, ok := w.below.(reader)
	for ok && !r.begun() && w.quiet(probePoll) {
	}
}

// quiet waits and reports whether the upstream said nothing in that time.
func (w *wire) quiet(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.heard:
	case <-w.dead:
	}
	return false
}
