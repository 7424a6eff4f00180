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
	"sallyport/internal/testutil/ireval"
)

const (
	// The bars, which are for indexes that are worth the name.
	barBuild  = 10_000 // tools a second
	barHeld   = 10     // KB a tool
	barsBegin = 2000   // tools

	// batch is how many documents bleve's default mapping is given at a time.
	batch = 1000
	// mostDefault is how many tools it is given at all: with 100,000 it takes most of a minute and a gigabyte.
	mostDefault = 2000
)

// pair is our index and bleve's, of the same tools.
type pair struct {
	tools []ireval.Entry
	ours  *index.Index
	bare  *baseline.Index
	// Of each time that they were made: what either then held in memory, in MB, and of our time, in ms, the reading of definitions.
	held, bareHeld, read []float64
}

// pair makes the two indexes of so many tools, unless they are there. Those of other sizes are given up first: what lives
// makes everything slower that collects garbage.
func (b *bench) pair(size int) (*pair, error) {
	if b.last != nil && len(b.last.tools) == size {
		return b.last, nil
	}
	p, err := b.newPair(size)
	if err != nil {
		return nil, err
	}
	if _, err = p.makeOurs(); err == nil {
		_, err = p.makeBare()
	}
	return p, err
}

// newPair is a pair of which nothing is made yet, in place of the one that was.
func (b *bench) newPair(size int) (*pair, error) {
	from, err := b.source()
	if err != nil {
		return nil, err
	}
	if err := b.release(); err != nil {
		return nil, err
	}
	b.last = &pair{tools: from.Tools(size)}
	return b.last, nil
}

// release gives up the current pair.
func (b *bench) release() (err error) {
	if b.last != nil {
		err = b.last.close()
	}
	b.last = nil
	return err
}

// makeOurs makes our index again, and says how long that took.
func (p *pair) makeOurs() (took float64, err error) {
	if p.ours != nil {
		if err := p.ours.Close(); err != nil {
			return 0, err
		}
		p.ours = nil
	}
	before := heap()
	var docs []index.Doc
	read, _ := since(func() error { docs = documents(p.tools); return nil })
	took, err = since(func() (err error) { p.ours, err = index.New(docs, nil); return err })
	docs = nil // what the index does not keep of them is none of its memory
	p.held, p.read = append(p.held, heap()-before), append(p.read, read)
	return read + took, err
}

// makeBare makes bleve's.
func (p *pair) makeBare() (float64, error) { return p.makeBleve(baseline.Lean) }

func (p *pair) makeBleve(build func(*ireval.Set) (*baseline.Index, error)) (took float64, err error) {
	if p.bare != nil {
		if err := p.bare.Close(); err != nil {
			return 0, err
		}
		p.bare = nil
	}
	before := heap()
	took, err = since(func() (err error) { p.bare, err = build(&ireval.Set{Entries: p.tools}); return err })
	p.bareHeld = append(p.bareHeld, heap()-before)
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

// documents is what the gateway makes of tools that it has come to know, for an index.
func documents(tools []ireval.Entry) []index.Doc {
	docs := make([]index.Doc, len(tools))
	for i, e := range tools {
		docs[i] = index.FromTool(e.Tool, e.About)
	}
	return docs
}

// heap is what is in use after garbage was collected, in MB.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / megabyte
}

// indexing is what making an index costs, in time and in memory, compared with bleve's.
func indexing(ctx context.Context, b *bench) error {
	for _, size := range b.sizes {
		if err := b.indexing(ctx, size); err != nil {
			return fmt.Errorf("%d tools: %w", size, err)
		}
		if size > mostDefault {
			continue
		}
		if err := b.againstDefault(ctx, size); err != nil {
			return fmt.Errorf("%d tools, default mapping: %w", size, err)
		}
	}
	return b.indexAgain(ctx)
}

func indexName(size int) string { return "index of " + thousands(size) + " tools" }

func (b *bench) indexing(ctx context.Context, size int) error {
	p, err := b.newPair(size)
	if err != nil {
		return err
	}
	ours, bare, err := byTurns(ctx, b.rounds(size), func() {}, p.makeOurs, p.makeBare)
	if err != nil {
		return err
	}
	b.addIndex(p, ours, bare)
	return nil
}

// addIndex adds what it took to make both, what of our time went where, and what both hold, with their bars.
func (b *bench) addIndex(p *pair, ours, bare []float64) {
	size := float64(len(p.tools))
	built := make([]float64, len(ours))
	for i := range ours {
		built[i] = ours[i] - p.read[i]
	}
	name := indexName(len(p.tools))
	whole := row{Case: name, Unit: "ms", Compared: stats.Compare(ours, bare),
		Note: "from definitions to the first search, in memory; bare: bleve at its leanest, scorch in memory, one field of all the words, nothing stored, one batch; it finds the same by score as its default mapping"}
	docs := row{Case: name + ": index.FromTool", Unit: "ms", Compared: stats.Compare(p.read, nil), Note: "of that, the reading of definitions"}
	postings := row{Case: name + ": index.New", Unit: "ms", Compared: stats.Compare(built, nil), Note: "of that, the index of what was read"}
	held := row{Case: name + ", memory", Unit: "MB", Compared: stats.Compare(p.held, p.bareHeld),
		Note: "what the heap has more of with it than before, after collection, each time that it was made; the definitions themselves not counted, and what is read once a process in the first of them alone"}
	if len(p.tools) >= barsBegin {
		for _, r := range []*row{&whole, &postings} {
			r.Bars = []bar{atLeast("tools/s", barBuild, size*1000/r.P50)}
		}
		held.Bars = []bar{atMost("KB a tool", barHeld, held.P50*1024/size)}
	}
	for _, r := range []row{whole, docs, postings, held} {
		b.add(r)
	}
}

// againstDefault is the same compared with bleve with its default settings.
func (b *bench) againstDefault(ctx context.Context, size int) error {
	p, err := b.newPair(size)
	if err != nil {
		return err
	}
	ours, bare, err := byTurns(ctx, b.rounds(size), func() {}, p.makeOurs, func() (float64, error) {
		return p.makeBleve(func(s *ireval.Set) (*baseline.Index, error) { return baseline.Scorch(s, batch) })
	})
	if err != nil {
		return err
	}
	name := indexName(size) + ", against bleve's default mapping"
	b.add(row{Case: name, Unit: "ms", Compared: stats.Compare(ours, bare),
		Note: fmt.Sprintf("bare does more than is asked of it: every field by itself and all of them once more, stored, with the places of words; scorch in memory, in batches of %d", batch)})
	b.add(row{Case: name + ", memory", Unit: "MB", Compared: stats.Compare(p.held, p.bareHeld), Note: "the same two"})
	return b.release()
}

// againSize is how many tools are indexed again.
const againSize = 2000

// indexAgain is what an index of tools costs that were indexed before, as at each start but the first, compared with the same without what is known.
func (b *bench) indexAgain(ctx context.Context) error {
	from, err := b.source()
	if err != nil {
		return err
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if err := b.release(); err != nil { // the memory of other pairs must not count
		return err
	}
	docs := documents(from.Tools(againSize))
	known := func() (float64, error) { return timeIndexNew(docs, &index.Options{Dir: filepath.Join(dir, "index")}) }
	if _, err := known(); err != nil { // the first one writes
		return err
	}
	ours, bare, err := byTurns(ctx, b.rounds(againSize), runtime.GC, known, func() (float64, error) { return timeIndexNew(docs, nil) })
	if err != nil {
		return err
	}
	b.add(row{Case: indexName(againSize) + ", known", Unit: "ms", Compared: stats.Compare(ours, bare),
		Note: "index.New with what an earlier run found out of them on disk; bare: index.New of the same without that"})
	return nil
}

// timeIndexNew returns the duration of index.New.
func timeIndexNew(docs []index.Doc, opts *index.Options) (float64, error) {
	var ix *index.Index
	took, err := since(func() (err error) { ix, err = index.New(docs, opts); return err })
	if err != nil {
		return 0, err
	}
	return took, ix.Close()
}
