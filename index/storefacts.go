package index

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// minAnalyze is the minimum number of documents per goroutine.
	minAnalyze = 8
	// maxUnusedTerms is the number of terms by which the table may exceed twice its size after the last renumbering.
	maxUnusedTerms = 1 << 16
)

// reuseFacts sets the facts of new entries that have a saved equal document.
func (st *store) reuseFacts(added []*entry) {
	parallel(len(added), func(next func() int) {
		for i := next(); i >= 0; i = next() {
			added[i].digest = added[i].doc.digest()
		}
	})
	if st.savedFacts == nil {
		st.load()
	}
	for _, e := range added {
		if e.facts = st.savedFacts[e.digest]; e.facts != nil {
			st.cachedDocs++
			delete(st.savedFacts, e.digest)
		}
	}
}

// load reads the saved facts. It keeps them for the lifetime of the store, since upstreams connect one after the other.
func (st *store) load() {
	texts, docs := st.cache.load(st.cache.fileName(st.digests()))
	ids := st.table.ids(texts)
	st.savedFacts = make(map[digest]*facts, len(docs))
	for _, d := range docs {
		st.savedFacts[d.digest] = d.remap(func(id uint32) uint32 { return ids[id] })
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
	im := &pendingSnapshot{name: st.cache.fileName(st.digests()), texts: st.table.list(), docs: make([]analyzed, len(st.entries))}
	for i, e := range st.entries {
		im.docs[i] = analyzed{e.digest, e.facts}
	}
	st.cache.save(im)
}

// analyze analyzes the new entries without facts, on all cores. It does not keep its
// glossary, which changing documents could grow without bound.
func (st *store) analyze(added []*entry) {
	unknown := slices.DeleteFunc(slices.Clone(added), func(e *entry) bool { return e.facts != nil })
	words := &wordCache{analyzers: st.analyzers, table: st.table}
	parallel(len(unknown), func(next func() int) {
		l := newDocAnalyzer(words, st.weigh)
		for i := next(); i >= 0; i = next() {
			unknown[i].facts = l.analyze(*unknown[i].doc)
		}
	})
	st.analyzedDocs = len(unknown)
	st.count(added)
}

func (st *store) count(added []*entry) {
	for _, e := range added {
		st.terms.add(e.terms[:e.numSpellChecked])
		st.vocabulary.add(e.words)
	}
}

// parallel runs work on several goroutines. next returns the numbers below n, each once, then -1.
func parallel(n int, work func(next func() int)) {
	var last atomic.Int64
	next := func() int {
		if i := int(last.Add(1)) - 1; i < n {
			return i
		}
		return -1
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+minAnalyze-1)/minAnalyze) {
		workers.Go(func() { work(next) })
	}
	workers.Wait()
}

// renumber rebuilds the table when much of it belongs to removed documents.
func (st *store) renumber() {
	if len(st.table.texts) <= 2*st.tableSize+maxUnusedTerms {
		return
	}
	old := st.table.texts
	st.table, st.terms, st.vocabulary, st.savedFacts = newTable(), termCounts{}, termCounts{}, map[digest]*facts{}
	for _, e := range st.entries {
		e.facts = e.remap(func(id uint32) uint32 { return st.table.id(old[id]) })
	}
	st.count(st.entries)
	st.tableSize = len(st.table.texts)
}
