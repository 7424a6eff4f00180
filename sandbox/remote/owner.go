package remote

import (
	"context"
	"encoding/json"
	"sync"

	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/bridge"
)

// maxOwner bounds the name of an owner, in bytes.
const maxOwner = 64 << 10

// ownerCaller tells the worker who owns the sandbox of a program before the program gets data that changes it.
type ownerCaller struct {
	bridge.Caller
	messages *bridge.Messages
	owner    func() string

	mu   sync.Mutex // orders messages
	told string
}

// withOwner returns a caller that tells the worker of changes of the job's owner.
func withOwner(m *bridge.Messages, job sandbox.Job, caller bridge.Caller) bridge.Caller {
	if job.Owner == "" || job.OwnerAfter == nil {
		return caller
	}
	return &ownerCaller{Caller: caller, messages: m, owner: job.OwnerAfter, told: job.Owner}
}

// Call implements [bridge.Caller].
func (o *ownerCaller) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if call.Peer != nil {
		call.Peer = ownerPeer{call.Peer, o}
	}
	defer o.tell()
	return o.Caller.Call(ctx, call)
}

// tell sends the owner if it has changed.
func (o *ownerCaller) tell() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.owner()
	if now == o.told {
		return
	}
	o.told = now
	_ = o.messages.WriteMessage(kindOwner, []byte(now)) // a broken connection ends the program
}

// ownerPeer tells the worker before the program gets a notification.
type ownerPeer struct {
	tool.Peer
	caller *ownerCaller
}

// Notify implements [tool.Peer].
func (p ownerPeer) Notify(method string, params json.RawMessage) {
	p.caller.tell()
	p.Peer.Notify(method, params)
}
