package embeddings

import (
	"context"
	"errors"
	"maps"
	"time"
)

const (
	// maxDocuments is how many tools are ranked.
	maxDocuments = 20_000
	// maxBatch is how many texts one request has, maxBatchText how many bytes of them.
	maxBatch     = 64
	maxBatchText = 64 << 10
	// maxRequest is the timeout of such a request.
	maxRequest = time.Minute
	// debounce is how long changes are collected: at the start there are many.
	debounce = 200 * time.Millisecond
	// saveInterval is how often a long run saves its vectors.
	saveInterval = 30 * time.Second
	// probeText is a text that an endpoint accepts if it accepts any.
	probeText = "tool"
)

// vectorSet has the vectors of documents. Only the goroutine of follow uses it.
type vectorSet struct {
	vectors    map[digest]vector
	dim        int // length of all vectors, 0 if there are none
	mismatches int // consecutive responses with vectors of another length
	// refused are texts that the endpoint rejects; they are not sent again. proven
	// says that it has recently accepted another text.
	refused  map[digest]bool
	accepted bool
	// unsaved says that some vectors are not on disk, saved is the time of the last
	// save, distrust says that the file has vectors of another model.
	unsaved, ignoreFiles bool
	lastSaved            time.Time
}

func newVectorSet() *vectorSet {
	return &vectorSet{vectors: map[digest]vector{}, refused: map[digest]bool{}}
}

// reset removes all vectors, and ignores those on disk.
func (s *vectorSet) reset() {
	*s = *newVectorSet()
	s.ignoreFiles = true
}

// run embeds documents whenever they change, until Close.
func (r *Ranker) run() {
	s := newVectorSet()
	var again <-chan time.Time
	for {
		select {
		case <-r.changed:
			if !r.pause(debounce) {
				return
			}
		case <-again:
		case <-r.ctx.Done():
			return
		}
		again = nil
		if wait := r.embedMissing(s); wait > 0 {
			again = time.After(wait)
		}
	}
}

func (r *Ranker) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		return false
	}
}

// embedMissing embeds the missing documents, and returns when to try again, 0 for never.
func (r *Ranker) embedMissing(s *vectorSet) time.Duration {
	select {
	case <-r.changed: // the newest documents are loaded below
	default:
	}
	if r.reembed.Swap(false) {
		s.reset()
	}
	s.accepted = false
	docs := *r.docs.Load()
	s.prune(docs)
	missing := r.missing(s, docs)
	if len(missing) > 0 {
		r.load(s, docs)
		missing = r.missing(s, docs)
	}
	r.updateItems(s, docs)
	defer func() {
		r.updateItems(s, docs)
		r.save(s)
	}()
	for len(missing) > 0 && r.ctx.Err() == nil {
		if wait := r.batchBackoff.remaining(); wait > 0 {
			return wait
		}
		batch := missing[:batchSize(missing)]
		err := r.embed(s, batch)
		if r.ctx.Err() != nil {
			return 0
		}
		r.recordOutcome(&r.batchBackoff, "tools", err)
		if err != nil {
			continue
		}
		missing = missing[len(batch):]
		r.updateItems(s, docs)
		if time.Since(s.lastSaved) > saveInterval {
			r.save(s)
		}
		if len(r.changed) > 0 {
			return time.Millisecond // with the newer documents
		}
	}
	return 0
}

// missing returns the texts that have no vector, each once.
func (r *Ranker) missing(s *vectorSet, docs []document) []string {
	var texts []string
	seen := map[digest]bool{}
	for _, doc := range docs {
		if _, ok := s.vectors[doc.digest]; ok || doc.text == "" || s.refused[doc.digest] || seen[doc.digest] {
			continue
		}
		seen[doc.digest] = true
		texts = append(texts, doc.text)
	}
	return texts
}

func batchSize(texts []string) int {
	size := 0
	for i, text := range texts[:min(len(texts), maxBatch)] {
		if size += len(text); size > maxBatchText && i > 0 {
			return i
		}
	}
	return min(len(texts), maxBatch)
}

// embed requests the vectors of texts. If the endpoint rejects them, it splits the
// batch to find the rejected texts, so that the others are embedded.
func (r *Ranker) embed(s *vectorSet, texts []string) error {
	ctx, cancel := context.WithTimeout(r.ctx, maxRequest)
	defer cancel()
	all, err := r.client.embed(ctx, texts)
	f, _ := errors.AsType[*fault](err)
	switch {
	case err == nil:
		return s.add(texts, all)
	case f == nil || !f.rejectsInput():
		return err
	case len(texts) > 1:
		if err := r.embed(s, texts[:len(texts)/2]); err != nil {
			return err
		}
		return r.embed(s, texts[len(texts)/2:])
	}
	if !s.accepted {
		if _, other := r.client.embed(ctx, []string{probeText}); other != nil {
			return err // it rejects every text
		}
		s.accepted = true
	}
	s.refused[digestOf(texts[0])] = true
	return nil
}

// add adds vectors if they are as long as the existing ones.
func (s *vectorSet) add(texts []string, all []vector) error {
	got := len(all[0].values)
	if s.dim != 0 && got != s.dim {
		err := faultf("it sends vectors of %d numbers now, before they had %d", got, s.dim)
		if s.mismatches++; s.mismatches >= maxMismatches { // the name is used by another model now
			s.reset()
		}
		return err
	}
	for i, text := range texts {
		s.vectors[digestOf(text)] = all[i]
	}
	s.dim, s.unsaved, s.mismatches = got, true, 0
	return nil
}

// prune removes vectors that no document has any more, once there are many.
func (s *vectorSet) prune(docs []document) {
	if len(s.vectors)+len(s.refused) < 2*len(docs)+1000 {
		return
	}
	current := map[digest]bool{}
	for _, doc := range docs {
		current[doc.digest] = true
	}
	maps.DeleteFunc(s.vectors, func(name digest, _ vector) bool { return !current[name] })
	maps.DeleteFunc(s.refused, func(name digest, _ bool) bool { return !current[name] })
}

// updateItems ranks the documents that have vectors, if most of them do.
func (r *Ranker) updateItems(s *vectorSet, docs []document) {
	items := make([]item, 0, len(docs))
	refused := 0
	for _, doc := range docs {
		if v, ok := s.vectors[doc.digest]; ok {
			items = append(items, item{doc.id, v})
		} else if s.refused[doc.digest] || doc.text == "" {
			refused++
		}
	}
	if len(items) == 0 || float64(len(items)+refused) < minCoverage*float64(len(docs)) {
		r.items.Store(nil)
		return
	}
	r.items.Store(&items)
}

// load reads stored vectors.
func (r *Ranker) load(s *vectorSet, docs []document) {
	if r.files == nil || s.ignoreFiles {
		return
	}
	kept, err := r.files.load()
	if err != nil {
		r.log.Warn("stored vectors are ignored", "reason", err.Error())
	}
	if len(kept.vectors) > 0 && (s.dim == 0 || s.dim == kept.dim) {
		s.dim = kept.dim
		for _, doc := range docs {
			if v, ok := kept.vectors[doc.digest]; ok {
				s.vectors[doc.digest] = v.vector
			}
		}
	}
}

// save writes the vectors, and updates the days of their last use once a day.
func (r *Ranker) save(s *vectorSet) {
	if r.files == nil || len(s.vectors) == 0 || !s.unsaved && time.Since(s.lastSaved) < 24*time.Hour {
		return
	}
	s.lastSaved = time.Now()
	if err := r.files.merge(s.dim, s.vectors, s.unsaved); err != nil {
		r.log.Warn("save vectors", "error", err.Error())
		return
	}
	s.unsaved, s.ignoreFiles = false, false
}
