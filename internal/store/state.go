package store

import (
	"context"
	"errors"
	"maps"
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
	// Servers are those with replicas, and the one of the connection, by name.
	Servers []ServerState
}

// ServerState is the state of one server of a shared store, as the leaders of the streams report it.
type ServerState struct {
	Name string
	// Connected says that it is the server of the connection.
	Connected bool
	// Offline says that no leader had contact with it for a while.
	Offline bool
	// Replicas is how many streams it has, Leads how many of them it leads, and Behind in how many it lacks records: Lag of them.
	Replicas, Leads, Behind int
	Lag                     uint64

	silence time.Duration // the shortest time since contact with a leader; 0 if there was none since an election
}

// offlineAfter is the time without contact after which a server is offline.
const offlineAfter = 10 * time.Second

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
		state.Servers = serverStates(state.Server, found)
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

// serverStates returns what the streams tell about the servers. connected is the server of the connection.
func serverStates(connected string, streams map[string]*jetstream.StreamInfo) []ServerState {
	all := map[string]*ServerState{}
	server := func(name string) *ServerState {
		if all[name] == nil {
			all[name] = &ServerState{Name: name, Connected: name == connected}
		}
		return all[name]
	}
	server(connected)
	for _, info := range streams {
		if info.Cluster == nil {
			server(connected).Replicas++
			continue
		}
		if info.Cluster.Leader != "" {
			leader := server(info.Cluster.Leader)
			leader.Leads++
			leader.Replicas++
		}
		for _, peer := range info.Cluster.Replicas {
			server(peer.Name).follow(peer)
		}
	}
	list := make([]ServerState, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := *all[name]
		s.Offline = s.Leads == 0 && !s.Connected && s.Behind > 0 && (s.silence == 0 || s.silence > offlineAfter)
		list = append(list, s)
	}
	return list
}

// follow adds a replica of a stream that the server does not lead.
func (s *ServerState) follow(peer *jetstream.PeerInfo) {
	s.Replicas++
	if peer.Active > 0 && (s.silence == 0 || peer.Active < s.silence) { // 0 is no contact yet
		s.silence = peer.Active
	}
	if !peer.Current || peer.Offline {
		s.Behind++
		s.Lag += peer.Lag
	}
}
