package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/bench/stats"
	"sallyport/codegen"
	"sallyport/gateway"
	"sallyport/gateway/toolsearch"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Latency is what things take on this machine.
type Latency struct {
	// Runs is how often each was measured, or more often; calls of a tool of an upstream at most [MaxAgain] times.
	Runs int `json:"runs"`
	// Tools and Upstreams are how many there were.
	Tools     int   `json:"tools"`
	Upstreams int   `json:"upstreams"`
	Rows      []Row `json:"rows"`
	// Missing says what was not measured, and why.
	Missing []string `json:"missing,omitempty"`
}

// Row is one thing that was measured, in milliseconds, compared with something bare.
type Row struct {
	What string `json:"what"`
	Unit string `json:"unit"`
	stats.Compared
	// Baseline describes Bare, "" if there is none.
	Baseline string `json:"beside,omitempty"`
}

// Setup is what times are taken of.
type Setup struct {
	// Runs is how often.
	Runs int
	// Open opens a gateway that knows from its cache what upstreams offer, starts none and has no sandbox wait for programs.
	Open func() (*gateway.Gateway, error)
	// Connected is how long the first one took to connect to all, in milliseconds.
	Connected float64
	// Programs says why none can be run; "" if they can.
	Programs string
	// Call is a tool that may be called, to be called by programs; nil if there is none.
	Call *tool.ID
	// CallsEach is how many calls a program may make; 0 is as many as it likes.
	CallsEach int
	// NoPool says that no sandbox waits for programs by the settings.
	NoPool bool
	// Interpreters are those of this machine by language, to compare with; what is missing is not compared.
	Interpreters map[string]string
}

// Latency takes the times. What cannot be measured is said in Missing; the error is that of ctx, and what there was until then is returned with it.
func (b *Bench) Latency(ctx context.Context, s Setup) (*Latency, error) {
	l := &Latency{Runs: s.Runs, Tools: len(b.tools()), Upstreams: len(b.gateway.Catalog.Upstreams())}
	for _, part := range []struct {
		what    string
		measure func(context.Context, Setup, *Latency) error
	}{
		{"start", b.start}, {"wrappers", b.generate}, {"index", b.index}, {"search", b.searchTimes}, {"programs", b.programs}, {"calls from programs", b.toolCalls},
	} {
		if err := l.recordFailure(ctx, part.what, part.measure(ctx, s, l)); err != nil {
			return l, err
		}
	}
	return l, nil
}

// recordFailure records that something could not be measured. Only the end of ctx is returned as an error.
func (l *Latency) recordFailure(ctx context.Context, what string, err error) error {
	if err != nil && ctx.Err() == nil {
		l.miss("%s: %s", what, sanitize.Line(err.Error(), 200))
	}
	return ctx.Err()
}

// add keeps a row.
func (l *Latency) add(what, beside string, ours, bare []float64) {
	if len(bare) == 0 {
		beside = ""
	}
	l.Rows = append(l.Rows, Row{What: what, Unit: "ms", Compared: stats.Compare(ours, bare), Baseline: beside})
}

func (l *Latency) miss(format string, args ...any) {
	l.Missing = append(l.Missing, fmt.Sprintf(format, args...))
}

// timeRuns calls do n times and returns the durations, in milliseconds.
func timeRuns(ctx context.Context, n int, do func() error) (took []float64, err error) {
	for range n {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		begin := time.Now()
		if err := do(); err != nil {
			return nil, err
		}
		took = append(took, milliseconds(time.Since(begin)))
	}
	return took, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// start opens gateways until all tools can be searched, compared with how long connecting to all upstreams took.
func (b *Bench) start(ctx context.Context, s Setup, l *Latency) error {
	var took []float64
	for range s.Runs {
		one, err := timeOpen(ctx, s.Open)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	l.add("start, all tools known", "start that connects to every upstream, once", took, []float64{s.Connected})
	return nil
}

func timeOpen(ctx context.Context, open func() (*gateway.Gateway, error)) (took float64, err error) {
	begin := time.Now()
	g, err := open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	g.Catalog.WaitConnected(ctx)
	return milliseconds(time.Since(begin)), ctx.Err()
}

// generate makes the wrappers of all tools, in both languages.
func (b *Bench) generate(ctx context.Context, s Setup, l *Latency) error {
	var ups []codegen.Upstream
	for _, up := range b.gateway.Catalog.Offers() {
		ups = append(ups, codegen.Upstream{
			ID: up.ID, Title: up.Offer.Server.Name, Description: up.Description,
			Tools: up.Offer.Tools, Resources: up.Offer.Resources, Templates: up.Offer.Templates, Prompts: up.Offer.Prompts,
		})
	}
	took, err := timeRuns(ctx, s.Runs, func() error { codegen.Generate(ups); return nil })
	if err == nil {
		l.add("wrappers of all tools, from nothing", "", took, nil)
	}
	return err
}

// docs are what is indexed.
func (b *Bench) docs() []index.Doc {
	var docs []index.Doc
	for _, up := range b.gateway.Catalog.Offers() {
		for _, t := range up.Offer.Tools {
			docs = append(docs, index.FromTool(t, up.Offer.Server.Name+" "+up.Description))
		}
	}
	return docs
}

// index makes the index of all tools from their definitions.
func (b *Bench) index(ctx context.Context, s Setup, l *Latency) error {
	took, err := timeRuns(ctx, s.Runs, func() error {
		ix, err := index.New(b.docs(), nil)
		if err != nil {
			return err
		}
		return ix.Close()
	})
	if err == nil {
		l.add("index of all tools, from nothing", "", took, nil)
	}
	return err
}

// searchTimes makes searches as models do, compared with the index alone.
func (b *Bench) searchTimes(ctx context.Context, s Setup, l *Latency) (err error) {
	ix, err := index.New(b.docs(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ix.Close()) }()
	var ours, bare []float64
	for range s.Runs {
		for i, t := range spread(b.tools(), maxProbes) {
			q := query(t, i%2 == 0)
			a, err := timeRuns(ctx, 1, func() error { _, err := b.gateway.Searcher.Search(ctx, toolsearch.Request{Query: q}); return err })
			if err != nil {
				return err
			}
			c, err := timeRuns(ctx, 1, func() error { _, err := ix.Search(ctx, index.Query{Text: q}); return err })
			if err != nil {
				return err
			}
			ours, bare = append(ours, a...), append(bare, c...)
		}
	}
	if len(ours) > 0 {
		l.add("search", "the index alone", ours, bare)
	}
	return nil
}
