package egress

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"

	"sallyport/internal/hostdial"
	"sallyport/sandbox/egress/edge"
)

// Gateway is the address of the stack in a sandbox, which is also its name server.
var Gateway = netip.AddrFrom4([4]byte{198, 18, 0, 1})

// Options configure a Network.
type Options struct {
	// Rules are the allowed hosts.
	Rules []Rule
	// Lookup resolves names; nil is the resolver of this machine.
	Lookup Lookup
	// OnRefused is called for each attempt that is refused, once for each host, port and reason. It must not block.
	OnRefused func(Refusal)
	// Connections is how many may be open at once; 0 is 256.
	Connections int
	// Authority has the certificates of the hosts of rules with a header.
	Authority *edge.Authority
	Logger    *slog.Logger
}

// maxRefusals bounds the refusals that are reported.
const maxRefusals = 500

// Network is the network of one sandbox. It is safe for concurrent use.
type Network struct {
	opts    Options
	allowed policy
	names   *book
	slots   chan struct{}
	ctx     context.Context //nolint:containedctx // ends with the network, and all connections with it
	stop    context.CancelFunc
	work    sync.WaitGroup

	ours, theirs *os.File // between Wrap and Start

	mu     sync.Mutex
	seen   map[Refusal]bool
	edges  map[string]*edge.Edge // by NAME:PORT; nil before Serve
	end    func()                // ends the stack; nil before Serve
	closed bool
}

// New returns a network without a device. The caller must Close it.
func New(opts Options) *Network {
	if opts.Lookup == nil {
		opts.Lookup = hostdial.Resolve
	}
	if opts.OnRefused == nil {
		opts.OnRefused = func(Refusal) {}
	}
	if opts.Connections == 0 {
		opts.Connections = 256
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Network{opts: opts, allowed: slices.Clone(opts.Rules), names: newBook(), slots: make(chan struct{}, opts.Connections), seen: map[Refusal]bool{}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	for _, rule := range n.allowed {
		if rule.Name[0] != '*' {
			n.names.address(rule.Name)
		}
	}
	return n
}

// Close ends all connections and waits for them.
func (n *Network) Close() {
	n.stop()
	for _, file := range []*os.File{n.ours, n.theirs} {
		if file != nil {
			_ = file.Close() // again, if Start was called
		}
	}
	n.mu.Lock()
	end := n.end
	n.end, n.closed = nil, true
	n.mu.Unlock()
	for _, e := range n.edges {
		e.Close()
	}
	if end != nil {
		end()
	}
	n.work.Wait()
}

// begin counts a connection, unless the network is closed. The caller calls work.Done at its end.
func (n *Network) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.work.Add(1)
	return true
}

// refuse reports a refusal, unless it was reported before.
func (n *Network) refuse(r Refusal) {
	n.mu.Lock()
	known := n.seen[r] || len(n.seen) >= maxRefusals
	if !known {
		n.seen[r] = true
	}
	n.mu.Unlock()
	if !known {
		n.opts.OnRefused(r)
	}
}
