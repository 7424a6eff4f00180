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
	// gather is how long changes are collected: at the start there are many.
	gather = 200 * time.Millisecond
	// saveEvery is how often a long run saves its vectors.
	saveEvery = 30 * time.Second
	// harmless is a text that an endpoint accepts if it accepts any.
	harmless = "tool"
)

// shelf has the vectors of documents. Only the goroutine of follow uses it.
type shelf struct {
	vectors map[digest]vector
	dim     int // length of all vectors, 0 if there are none
	odd     int // consecutive responses with vectors of another length
	// refused are texts that the endpoint rejects; they are not sent again. proven
	// says that it has recently accepted another text.
	refused map[digest]bool
	proven  bool
	// unsaved says that some vectors are not on disk, saved is the time of the last
	// save, distrust says that the file has vectors of another model.
	unsaved, distrust bool
	saved             time.Time
}

func newShelf() *shelf {
	return &shelf{vectors: map[digest]vector{}, refused: map[digest]bool{}}
}

// anew removes all vectors, and ignores those on disk.
func (s *shelf) anew() {
	*s = *newShelf()
	s.distrust = true
}

// follow embeds documents whenever they change, until Close.
func (r *Ranker) follow() {
	s := newShelf()
	var again <-chan time.Time
	for {
		select {
		case <-r.changed:
			if !r.pause(gather) {
				return
			}
		case <-again:
		case <-r.life.Done():
			return
		}
		again = nil
		if wait := r.fill(s); wait > 0 {
			again = time.After(wait)
		}
	}
}

func (r *Ranker) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.life.Done():
		return false
	}
}

// fill embeds the missing documents, and returns when to try again, 0 for never.
func (r *Ranker) fill(s *shelf) time.Duration {
	select {
	case <-r.changed: // the newest documents are loaded below
	default:
	}
	if r.anew.Swap(false) {
		s.anew()
	}
	s.proven = false
	docs := *r.docs.Load()
	s.forget(docs)
	missing := r.missing(s, docs)
	if len(missing) > 0 {
		r.load(s, docs)
		missing = r.missing(s, docs)
	}
	r.show(s, docs)
	defer func() {
		r.show(s, docs)
		r.save(s)
	}()
	for len(missing) > 0 && r.life.Err() == nil {
		if wait := r.embedding.over(); wait > 0 {
			return wait
		}
		batch := missing[:batchOf(missing)]
		err := r.embed(s, batch)
		if r.life.Err() != nil {
			return 0
		}
		r.note(&r.embedding, "tools", err)
		if err != nil {
			continue
		}
		missing = missing[len(batch):]
		r.show(s, docs)
		if time.Since(s.saved) > saveEvery {
			r.save(s)
		}
		if len(r.changed) > 0 {
			return time.Millisecond // with the newer documents
		}
	}
	return 0
}

// missing returns the texts that have no vector, each once.
func (r *Ranker) missing(s *shelf, docs []document) []string {
	var texts []string
	seen := map[digest]bool{}
	for _, doc := range docs {
		if _, ok := s.vectors[doc.name]; ok || doc.text == "" || s.refused[doc.name] || seen[doc.name] {
			continue
		}
		seen[doc.name] = true
		texts = append(texts, doc.text)
	}
	return texts
}

func batchOf(texts []string) int {
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
func (r *Ranker) embed(s *shelf, texts []string) error {
	ctx, cancel := context.WithTimeout(r.life, maxRequest)
	defer cancel()
	all, err := r.client.embed(ctx, texts)
	f, _ := errors.AsType[*fault](err)
	switch {
	case err == nil:
		return s.add(texts, all)
	case f == nil || !f.refuses():
		return err
	case len(texts) > 1:
		if err := r.embed(s, texts[:len(texts)/2]); err != nil {
			return err
		}
		return r.embed(s, texts[len(texts)/2:])
	}
	if !s.proven {
		if _, other := r.client.embed(ctx, []string{harmless}); other != nil {
			return err // it rejects every text
		}
		s.proven = true
	}
	s.refused[digestOf(texts[0])] = true
	return nil
}

// add adds vectors if they are as long as the existing ones.
func (s *shelf) add(texts []string, all []vector) error {
	got := len(all[0].values)
	if s.dim != 0 && got != s.dim {
		err := faultf("it sends vectors of %d numbers now, before they had %d", got, s.dim)
		if s.odd++; s.odd >= maxOdd { // the name is used by another model now
			s.anew()
		}
		return err
	}
	for i, text := range texts {
		s.vectors[digestOf(text)] = all[i]
	}
	s.dim, s.unsaved, s.odd = got, true, 0
	return nil
}

// forget removes vectors that no document has any more, once there are many.
func (s *shelf) forget(docs []document) {
	if len(s.vectors)+len(s.refused) < 2*len(docs)+1000 {
		return
	}
	current := map[digest]bool{}
	for _, doc := range docs {
		current[doc.name] = true
	}
	maps.DeleteFunc(s.vectors, func(name digest, _ vector) bool { return !current[name] })
	maps.DeleteFunc(s.refused, func(name digest, _ bool) bool { return !current[name] })
}

// show ranks the documents that have vectors, if most of them do.
func (r *Ranker) show(s *shelf, docs []document) {
	items := make([]item, 0, len(docs))
	refused := 0
	for _, doc := range docs {
		if v, ok := s.vectors[doc.name]; ok {
			items = append(items, item{doc.id, v})
		} else if s.refused[doc.name] || doc.text == "" {
			refused++
		}
	}
	if len(items) == 0 || float64(len(items)+refused) < enough*float64(len(docs)) {
		r.items.Store(nil)
		return
	}
	r.items.Store(&items)
}

// load reads stored vectors.
func (r *Ranker) load(s *shelf, docs []document) {
	if r.files == nil || s.distrust {
		return
	}
	kept, err := r.files.load()
	if err != nil {
		r.log.Warn("stored vectors are ignored", "reason", err.Error())
	}
	if len(kept.vectors) > 0 && (s.dim == 0 || s.dim == kept.dim) {
		s.dim = kept.dim
		for _, doc := range docs {
			if v, ok := kept.vectors[doc.name]; ok {
				s.vectors[doc.name] = v.vector
			}
		}
	}
}

// save writes the vectors, and updates the days of their last use once a day.
func (r *Ranker) save(s *shelf) {
	if r.files == nil || len(s.vectors) == 0 || !s.unsaved && time.Since(s.saved) < 24*time.Hour {
		return
	}
	s.saved = time.Now()
	if err := r.files.merge(s.dim, s.vectors, s.unsaved); err != nil {
		r.log.Warn("save vectors", "error", err.Error())
		return
	}
	s.unsaved, s.distrust = false, false
}
