package cluster

import (
	"context"
	"errors"

	"sallyport/internal/store"
)

// Behind is the state of a server that lacks records which others have, besides [Alive] and [Lost].
const Behind = "behind"

// Server is a NATS server of the store.
type Server struct {
	Name string `json:"name"`
	// Connected says that the one who asked is connected to it.
	Connected bool `json:"connected,omitempty"`
	// State is alive, behind or lost, as the leaders of the streams see it.
	State string `json:"state"`
	// Streams is how many streams of the store it keeps, Leads how many of them it leads.
	Streams int `json:"streams"`
	Leads   int `json:"leads"`
	// Behind is in how many of them it lacks records, Lag how many records those are.
	Behind int    `json:"behind"`
	Lag    uint64 `json:"lag"`
}

// Store asks a shared store which gateways use it, and which servers keep it. Errors of one do not hide the other.
func Store(ctx context.Context, records *store.Store) (gateways []Gateway, servers []Server, err error) {
	gateways, servers = []Gateway{}, []Server{}
	state, err := records.State(ctx)
	for _, s := range state.Servers {
		servers = append(servers, serverOf(s))
	}
	seen, unseen := records.Gateways(ctx)
	for _, g := range seen {
		gateways = append(gateways, gatewayOf(g))
	}
	return gateways, servers, errors.Join(err, unseen)
}

func serverOf(s store.ServerState) Server {
	one := Server{Name: s.Name, Connected: s.Connected, State: Alive, Streams: s.Replicas, Leads: s.Leads, Behind: s.Behind, Lag: s.Lag}
	switch {
	case s.Offline:
		one.State = Lost
	case s.Behind > 0:
		one.State = Behind
	}
	return one
}
