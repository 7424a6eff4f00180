package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State is the state of the servers of a shared store.
type State struct {
	// Server and Version are those of the server of the connection.
	Server, Version string
	// Delay is the time of one request.
	Delay   time.Duration
	Streams []StreamState
}

// StreamState is the state of one bucket or log.
type StreamState struct {
	// Name has the kind in front: "bucket_approvals".
	Name     string
	Replicas int
	// Leader is the server that takes its writes, "" for none.
	Leader string
	// Behind are the servers with replicas that lack acknowledged records or are not connected.
	Behind  []string
	Records uint64
	Bytes   uint64
}

// Stream returns the state of one bucket or log.
func (s State) Stream(name string) StreamState {
	for _, one := range s.Streams {
		if one.Name == name {
			return one
		}
	}
	return StreamState{}
}

// errNotShared is returned by State for a store of one process.
var errNotShared = errors.New("the store has no servers")

// State asks the servers of a shared store for their state.
func (s *Store) State(ctx context.Context) (State, error) {
	if s.remote == nil {
		return State{}, errNotShared
	}
	if err := s.wait(ctx); err != nil {
		return State{}, err
	}
	return s.remote.state(ctx)
}

func (m *remote) state(ctx context.Context) (state State, err error) {
	conn := m.engine.conn
	err = m.engine.scope.try(ctx, func(ctx context.Context) error {
		state = State{Server: conn.ConnectedServerName(), Version: conn.ConnectedServerVersion()}
		began := time.Now()
		if _, err := m.engine.js.AccountInfo(ctx); err != nil {
			return err
		}
		state.Delay = time.Since(began)
		found, err := m.engine.list(ctx)
		for name, info := range found {
			state.Streams = append(state.Streams, streamState(name, info))
		}
		return err
	})
	slices.SortFunc(state.Streams, func(a, b StreamState) int { return strings.Compare(a.Name, b.Name) })
	return state, err
}

func streamState(name string, info *jetstream.StreamInfo) StreamState {
	one := StreamState{Name: name, Replicas: info.Config.Replicas, Records: info.State.Msgs, Bytes: info.State.Bytes}
	if info.Cluster == nil {
		return one
	}
	one.Leader = info.Cluster.Leader
	for _, peer := range info.Cluster.Replicas {
		if !peer.Current || peer.Offline {
			one.Behind = append(one.Behind, peer.Name)
		}
	}
	return one
}
