package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"sallyport/bench/search/baseline"
	"sallyport/bench/stats"
	"sallyport/index"
	"sallyport/internal/testutil/judge"
)

// batch is how many documents bleve is given at a time.
const batch = 1000

// pair is our index and bleve's, of the same tools.
type pair struct {
	tools []judge.Entry
	ours  *index.Index
	bare  *baseline.Index
	// held is what either holds in memory, in MB.
	held, bareHeld float64
}

// pair makes the two indexes of so many tools, unless they are there.
func (b *bench) pair(size int) (*pair, error) {
	if p := b.pairs[size]; p != nil {
		return p, nil
	}
	from, err := b.source()
	if err != nil {
		return nil, err
	}
	p := &pair{tools: from.Tools(size)}
	b.pairs[size] = p
	_, err = p.makeOurs()
	if err == nil {
		_, err = p.makeBare()
	}
	return p, err
}

// makeOurs makes our index anew, and says how long that took.
func (p *pair) makeOurs() (took float64, err error) {
	if p.ours != nil {
		if err := p.ours.Close(); err != nil {
			return 0, err
		}
		p.ours = nil
	}
	before := heap()
	took, err = since(func() (err error) { p.ours, err = indexOf(p.tools, nil); return err })
	p.held = heap() - before
	return took, err
}

// makeBare makes bleve's.
func (p *pair) makeBare() (took float64, err error) {
	if p.bare != nil {
		if err := p.bare.Close(); err != nil {
			return 0, err
		}
		p.bare = nil
	}
	before := heap()
	took, err = since(func() (err error) { p.bare, err = baseline.Scorch(&judge.Set{Entries: p.tools}, batch); return err })
	p.bareHeld = heap() - before
	return took, err
}

func (p *pair) close() error {
	var errs []error
	if p.ours != nil {
		errs = append(errs, p.ours.Close())
	}
	if p.bare != nil {
		errs = append(errs, p.bare.Close())
	}
	return errors.Join(errs...)
}

// indexOf is what the gateway does with tools that it has come to know.
func indexOf(tools []judge.Entry, opts *index.Options) (*index.Index, error) {
	docs := make([]index.Doc, len(tools))
	for i, e := range tools {
		docs[i] = index.FromTool(e.Tool, e.About)
	}
	return index.New(docs, opts)
}

// heap is what is in use after garbage was collected, in MB.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / megabyte
}

// indexing is what making an index costs, in time and in memory, beside bleve's.
func indexing(ctx context.Context, b *bench) error {
	for _, size := range b.sizes {
		if err := b.indexing(ctx, size); err != nil {
			return fmt.Errorf("%d tools: %w", size, err)
		}
	}
	return b.indexAgain(ctx)
}

func (b *bench) indexing(ctx context.Context, size int) error {
	from, err := b.source()
	if err != nil {
		return err
	}
	p := &pair{tools: from.Tools(size)}
	if old := b.pairs[size]; old != nil {
		err = old.close()
	}
	b.pairs[size] = p
	if err != nil {
		return err
	}
	ours, bare, err := byTurns(ctx, b.rounds(size), func() {}, p.makeOurs, p.makeBare)
	if err != nil {
		return err
	}
	name := "index of " + thousands(size) + " tools"
	b.add(row{Case: name, Unit: "ms", Compared: stats.Compare(ours, bare), Note: fmt.Sprintf(
		"from definitions to the first search, in memory; bare: bleve's default mapping of the same texts, scorch, in memory, in batches of %d", batch)})
	b.add(row{Case: name + ", memory", Unit: "MB", Compared: stats.Compare([]float64{p.held}, []float64{p.bareHeld}),
		Note: "what the heap has more of with it than before, after collection, by the last of those; the definitions themselves not counted"})
	return nil
}

// againSize is how many tools are indexed again.
const againSize = 2000

// indexAgain is what an index costs whose tools were indexed before, as at each start but the first.
func (b *bench) indexAgain(ctx context.Context) error {
	from, err := b.source()
	if err != nil {
		return err
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	p := &pair{tools: from.Tools(againSize)}
	defer p.close()
	known := func() (float64, error) {
		var ix *index.Index
		took, err := since(func() (err error) {
			ix, err = indexOf(p.tools, &index.Options{Dir: filepath.Join(dir, "index")})
			return err
		})
		if err != nil {
			return 0, err
		}
		return took, ix.Close()
	}
	if _, err := known(); err != nil { // the first one writes
		return err
	}
	ours, bare, err := byTurns(ctx, b.rounds(againSize), runtime.GC, known, p.makeBare)
	if err != nil {
		return err
	}
	b.add(row{Case: "index of " + thousands(againSize) + " tools, known", Unit: "ms", Compared: stats.Compare(ours, bare),
		Note: "with what an earlier run found out of them on disk; bare is bleve's, which is made anew"})
	return nil
}
