package egress

import (
	"context"
	"net"
	"strconv"
	"time"

	"sallyport/sandbox/egress/edge"
)

// dialTimeout bounds the time of a connection to a host.
const dialTimeout = 10 * time.Second

func place(name string, port uint16) string { return name + ":" + strconv.Itoa(int(port)) }

// dial connects to the host of a rule. What is refused is reported.
func (n *Network) dial(ctx context.Context, rule Rule, name string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := rule.dial(ctx, name, n.opts.Lookup)
	if err != nil && n.ctx.Err() == nil {
		refusal := Refusal{Host: name, Port: rule.Port, Reason: err.Error()}
		if refusal.Reason == ReasonPrivate {
			refusal.Allow, refusal.Private = place(name, rule.Port), true
		}
		n.refuse(refusal)
	}
	return conn, err
}

// openEdges makes the edges of the hosts with a header.
func (n *Network) openEdges() error {
	edges := map[string]*edge.Edge{}
	n.edges = edges
	for _, rule := range n.allowed {
		at := place(rule.Name, rule.Port)
		if len(rule.Header) == 0 || edges[at] != nil {
			continue
		}
		made, err := n.opts.Authority.New(edge.Options{
			Name: rule.Name, Port: rule.Port, Header: rule.Header, Connections: n.opts.Connections,
			Dial:    func(ctx context.Context) (net.Conn, error) { return n.dial(ctx, rule, rule.Name) },
			Refused: func(reason string) { n.refuse(Refusal{Host: rule.Name, Port: rule.Port, Reason: reason}) },
		})
		if err != nil {
			return err
		}
		edges[at] = made
	}
	return nil
}
