package index

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// minLearn is the minimum number of documents per goroutine.
	minLearn = 8
	// maxIdle is the number of terms by which the table may exceed twice its size after the last renumbering.
	maxIdle = 1 << 16
)

// recall sets the facts of new entries that have a saved equal document.
func (st *store) recall(added []*entry) {
	onCores(len(added), func(next func() int) {
		for i := next(); i >= 0; i = next() {
			added[i].digest = added[i].doc.digest()
		}
	})
	if st.known == nil {
		st.load()
	}
	for _, e := range added {
		if e.facts = st.known[e.digest]; e.facts != nil {
			st.recalled++
			delete(st.known, e.digest)
		}
	}
}

// load reads the saved facts. It keeps them for the lifetime of the store, since upstreams connect one after the other.
func (st *store) load() {
	texts, docs := st.saved.load(st.saved.name(st.digests()))
	ids := st.table.ids(texts)
	st.known = make(map[digest]*facts, len(docs))
	for _, d := range docs {
		st.known[d.digest] = d.mapped(func(id uint32) uint32 { return ids[id] })
	}
}

func (st *store) digests() []digest {
	all := make([]digest, len(st.entries))
	for i, e := range st.entries {
		all[i] = e.digest
	}
	return all
}

// save passes the current content to the disk cache.
func (st *store) save() {
	im := &image{name: st.saved.name(st.digests()), texts: st.table.list(), docs: make([]analyzed, len(st.entries))}
	for i, e := range st.entries {
		im.docs[i] = analyzed{e.digest, e.facts}
	}
	st.saved.save(im)
}

// learn analyzes the new entries without facts, on all cores. It does not keep its
// glossary, which changing documents could grow without bound.
func (st *store) learn(added []*entry) {
	unknown := slices.DeleteFunc(slices.Clone(added), func(e *entry) bool { return e.facts != nil })
	words := &glossary{words: st.words, table: st.table}
	onCores(len(unknown), func(next func() int) {
		l := newLearner(words, st.weigh)
		for i := next(); i >= 0; i = next() {
			unknown[i].facts = l.learn(*unknown[i].doc)
		}
	})
	st.learned = len(unknown)
	st.count(added)
}

func (st *store) count(added []*entry) {
	for _, e := range added {
		st.terms.add(e.terms[:e.likely])
		st.vocabulary.add(e.words)
	}
}

// onCores runs work on several goroutines. next returns the numbers below n, each once, then -1.
func onCores(n int, work func(next func() int)) {
	var last atomic.Int64
	next := func() int {
		if i := int(last.Add(1)) - 1; i < n {
			return i
		}
		return -1
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+minLearn-1)/minLearn) {
		workers.Go(func() { work(next) })
	}
	workers.Wait()
}

// renumber rebuilds the table when much of it belongs to removed documents.
func (st *store) renumber() {
	if len(st.table.texts) <= 2*st.tableWas+maxIdle {
		return
	}
	old := st.table.texts
	st.table, st.terms, st.vocabulary, st.known = newTable(), tally{}, tally{}, map[digest]*facts{}
	for _, e := range st.entries {
		e.facts = e.mapped(func(id uint32) uint32 { return st.table.id(old[id]) })
	}
	st.count(st.entries)
	st.tableWas = len(st.table.texts)
}
