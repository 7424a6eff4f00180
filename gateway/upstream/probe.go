package upstream

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// probePoll is the interval of checks whether a process has read its input, and whether an authorization is in progress.
const probePoll = 20 * time.Millisecond

// readObserver is a connection that can tell whether the peer has started to read.
type readObserver interface {
	// begun reports whether some of what was written has been read.
	begun() bool
}

// discover sends server/discover with a time limit, which the SDK lacks. Some
// servers do not answer unknown methods; the SDK would wait for such a server until
// ctx ends, with no time left for initialize.
//
// The clock starts when the server has begun to read its input, not when it was
// started: a slow start does not indicate an old revision. It stops during an authorization. After one limit the SDK
// gets "method not found", and continues with initialize over the same connection.
// After two more limits without any response the server is stuck in server/discover;
// it is restarted with initialize only.
func (w *wire) discover(ctx context.Context, req *jsonrpc.Request) error {
	select {
	case <-w.heard: // it has responded once; this is a request in another revision
		return w.conn.Write(ctx, req)
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	var silent atomic.Bool
	w.background(func(context.Context) {
		defer cancel()
		w.waitBegun()
		if w.waitSilent(w.probe) {
			silent.Store(true)
			w.inject(&jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer to server/discover"}})
			cancel() // over HTTP the write below may still be waiting
			if w.waitSilent(2 * w.probe) {
				w.fail(errNoHandshake)
			}
		}
	})
	err := w.conn.Write(ctx, req)
	if err == nil || silent.Load() {
		return nil
	}
	w.markHeard() // an error is a response
	return err
}

func (w *wire) waitBegun() {
	r, ok := w.conn.(readObserver)
	for ok && !r.begun() && w.waitSilent(probePoll) {
	}
}

// waitSilent waits for d, not counting authorizations, and reports whether the upstream sent no response in that time.
func (w *wire) waitSilent(d time.Duration) bool {
	step := min(d, probePoll)
	for timer := time.NewTimer(step); d > 0; timer.Reset(step) {
		select {
		case <-timer.C:
		case <-w.heard:
			return false
		case <-w.dead:
			return false
		}
		if w.authorizing == nil || !w.authorizing() {
			d -= step
		}
	}
	return true
}
