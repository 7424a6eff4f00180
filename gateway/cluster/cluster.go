// Package cluster shows the gateways that share a store, its servers, and the workers that run programs for them. Its main type is [Cluster].
package cluster

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/labels"
	"sallyport/internal/natsconn"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox/workers"
)

// answerTime is how long workers may take to answer, and storeTime how long the servers may.
const answerTime, storeTime = time.Second, 3 * time.Second

// The states of gateways and workers.
const (
	Alive    = "alive"
	Lost     = "lost"
	Draining = "draining"
	Drained  = "drained"
)

// Members is what a gateway knows of its cluster.
type Members struct {
	// Gateways are sorted by the time when they joined, Workers by name.
	Gateways []Gateway `json:"gateways"`
	Workers  []Worker  `json:"workers"`
	// Servers are those of the store, by name.
	Servers []Server `json:"servers"`
	// Problem says why a list is not complete, "" if all were asked.
	Problem string `json:"problem,omitempty"`
}

// Gateway is a gateway that shares the store.
type Gateway struct {
	ID string `json:"id"`
	// Self says that it is the gateway that answers.
	Self bool   `json:"self,omitempty"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Version is that of Sallyport.
	Version string `json:"version"`
	// State is alive or lost. A gateway that ends by itself is not listed.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Beaten is when the servers of the store got its last heartbeat.
	Beaten time.Time `json:"beaten"`

	store.Load
}

// Worker is a process that runs programs for the gateways.
type Worker struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Version  string `json:"version"`
	// State is alive, draining or drained. A worker that does not answer is not listed.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Beaten is when this gateway got its last heartbeat.
	Beaten time.Time `json:"beaten"`
	// Seats is how many programs it runs at once at most, Busy how many it runs.
	Seats  int               `json:"seats"`
	Busy   int               `json:"busy"`
	Labels map[string]string `json:"labels,omitempty"`
	// Lacks are the languages that it cannot run, and the labels of sandbox.placement that it does not have.
	Lacks []string `json:"lacks,omitempty"`
}

// Cluster shows the cluster of a gateway. It is safe for concurrent use.
type Cluster struct {
	records *store.Store
	set     *config.Config
	client  string
}

// New returns the cluster of a gateway with a store, and the settings of its start; client is the name of this process at the servers.
func New(records *store.Store, set *config.Config, client string) *Cluster {
	return &Cluster{records, set, client}
}

// Report asks the workers what they are, which takes about a second, and lists the gateways and the servers. It is for operators. Errors are *tool.Error.
func (c *Cluster) Report(ctx context.Context) (Members, error) {
	server, err := c.server(ctx)
	if err != nil {
		return Members{}, err
	}
	r := Members{Workers: []Worker{}}
	var unanswered error
	var work sync.WaitGroup
	work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		r.Gateways, r.Servers, unanswered = Store(ctx, c.records)
	})
	found, err := workers.List(ctx, server, c.set.Store.Prefix, answerTime)
	work.Wait()
	if err != nil {
		r.Problem = "the workers cannot be asked: " + sanitize.Line(err.Error(), 300)
	} else if unanswered != nil {
		r.Problem = "the NATS servers do not answer: " + sanitize.Line(unanswered.Error(), 300)
	}
	for _, w := range found {
		r.Workers = append(r.Workers, workerOf(w, c.set.Sandbox.Placement))
	}
	return r, nil
}

// Drain tells all processes of a worker to take no more programs, and waits until they follow that. Those that run go on. It is for
// operators. Errors are *tool.Error.
func (c *Cluster) Drain(ctx context.Context, worker string) error {
	return c.order(ctx, worker, workers.Drain)
}

// Resume is the opposite of Drain.
func (c *Cluster) Resume(ctx context.Context, worker string) error {
	return c.order(ctx, worker, workers.Resume)
}

func (c *Cluster) order(ctx context.Context, worker string, order workers.Order) error {
	server, err := c.server(ctx)
	if err != nil {
		return err
	}
	if err := workers.CheckName(worker); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(err.Error(), 300)}
	}
	_, err = workers.Command(ctx, server, c.set.Store.Prefix, worker, order, false, answerTime)
	return OrderError(err)
}

// OrderError returns the *tool.Error of an error of [workers.Command], nil for none.
func OrderError(err error) error {
	if unknown, ok := errors.AsType[*workers.UnknownError](err); ok {
		return &tool.Error{Kind: tool.NotFound, Message: unknown.Error(), Hint: "workers that have: " + cmp.Or(strings.Join(unknown.Known, ", "), "none")}
	}
	if err != nil {
		return &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err}
	}
	return nil
}

// server returns the servers of the cluster, for operators.
func (c *Cluster) server(ctx context.Context) (natsconn.Server, error) {
	if tool.Operator(ctx) == "" {
		return natsconn.Server{}, toolcall.OperatorsOnly("the cluster")
	}
	if !c.records.Shared() || !c.set.Store.IsRemote() {
		return natsconn.Server{}, &tool.Error{Kind: tool.NotFound, Message: "there is no cluster: upstreams.yaml has no store with a url", Hint: "see docs/how-to/workers.md"}
	}
	return natsconn.Of(c.set.Store, c.client), nil
}

func gatewayOf(s store.Seen) Gateway {
	g := Gateway{ID: s.ID, Self: s.Self, Host: s.Host, PID: s.PID, Version: strings.TrimPrefix(s.Name, "sallyport "), State: Alive, Since: s.Since, Beaten: s.Beaten, Load: *s.Load}
	if s.Lost {
		g.State = Lost
	}
	return g
}

func workerOf(w workers.Worker, placement []string) Worker {
	one := Worker{
		Name: w.Name, Instance: w.Instance, Version: w.Version, State: Alive, Since: w.Since, Beaten: w.Seen, Seats: w.Seats, Busy: w.Busy, Labels: w.Labels,
		Lacks: labels.Missing(placement, w.Labels),
	}
	for _, i := range w.Lacks {
		one.Lacks = append(one.Lacks, string(i))
	}
	switch {
	case w.Draining && w.Busy > 0:
		one.State = Draining
	case w.Draining:
		one.State = Drained
	}
	return one
}
