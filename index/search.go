package index

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	blevesearch "github.com/blevesearch/bleve_index_api"
)

// search scores the documents of one request with BM25F: the occurrences of a
// term in all fields are pooled, each weighed by its field and that field's
// length, and only then saturated. Sums over fields of separate scores rank worse.
type search struct {
	*snapshot
	ctx  context.Context
	req  request
	work *scratch
	// mass is the worth of all words asked for, cover of those that a document has.
	mass      float64
	unmatched []queryWord
}

// scratch is the memory of one search: per document and per upstream.
type scratch struct {
	score, cover []float64
	hit          []int32 // ords with a score
	freq         []float64
	touched      []int32 // ords with a freq, for the term at hand
	evidence     []float64
	best         []float64 // per upstream, for the term at hand
}

func newScratch(docs, upstreams int) *scratch {
	return &scratch{
		score: make([]float64, docs), cover: make([]float64, docs), freq: make([]float64, docs),
		evidence: make([]float64, upstreams), best: make([]float64, upstreams),
	}
}

func (w *scratch) reset() {
	for _, ord := range w.hit {
		w.score[ord], w.cover[ord] = 0, 0
	}
	w.forget()
	clear(w.evidence)
	w.hit = w.hit[:0]
}

// forget clears what belongs to one term.
func (w *scratch) forget() {
	for _, ord := range w.touched {
		w.freq[ord] = 0
	}
	w.touched = w.touched[:0]
}

func (s *snapshot) search(ctx context.Context, q Query) (Results, error) {
	req := s.parse(q)
	if req.empty() {
		return s.list(req, q.Limit), nil
	}
	work := s.scratch.Get().(*scratch)
	defer func() {
		work.reset()
		s.scratch.Put(work)
	}()
	run := &search{snapshot: s, ctx: ctx, req: req, work: work}
	if req.unknown != "" && q.Upstream != "" {
		return run.results(q.Limit), nil
	}
	if err := run.score(); err != nil {
		return Results{}, err
	}
	return run.results(q.Limit), nil
}

// list returns the tools of one upstream by name.
func (s *snapshot) list(req request, limit int) Results {
	var res Results
	for _, up := range s.upstreams {
		if up.id != req.upstream {
			continue
		}
		res.Total = up.last - up.first
		for _, d := range s.docs[up.first:min(up.last, up.first+orDefault(limit))] {
			res.Hits = append(res.Hits, Hit{ID: d.ID})
		}
	}
	if req.unknown != "" {
		res.Weak, res.Unmatched, res.Suggest = true, []string{req.unknown}, s.nearUpstreams(req.unknown)
	}
	return res
}

func orDefault(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return limit
}

// alternative is a term to look for and what it is worth.
type alternative struct {
	term   string
	weight float64
}

// score adds up the terms: the words themselves, or what is like them where no
// document has them; neighbours joined; synonyms.
func (r *search) score() error {
	used := map[string]bool{}
	for _, w := range r.req.words {
		used[w.stem] = true
		if err := r.scoreWord(w); err != nil {
			return err
		}
	}
	for _, j := range r.req.joined {
		term := string(r.words.stem.stem([]byte(j)))
		if used[term] {
			continue
		}
		used[term] = true
		if _, err := r.add([]alternative{{term, 1}}, r.weigh.joined, false); err != nil {
			return err
		}
	}
	for _, w := range r.req.words {
		for _, syn := range r.synonyms(w.stem) {
			if used[syn] {
				continue
			}
			used[syn] = true
			if _, err := r.add([]alternative{{syn, 1}}, r.weigh.synonym, false); err != nil {
				return err
			}
		}
	}
	r.addUpstreams()
	return nil
}

func (r *search) scoreWord(w queryWord) error {
	weight := 1.0
	if w.stop {
		weight = r.weigh.stop
	}
	found, err := r.add([]alternative{{w.stem, 1}}, weight, !w.stop)
	if err != nil || found || w.stop {
		return err
	}
	near, err := r.near(w)
	if err != nil {
		return err
	}
	r.unmatched = append(r.unmatched, w)
	found, err = r.add(near, r.weigh.fuzzy, true)
	if !found {
		r.mass += r.rarest()
	}
	return err
}

// rarest is the worth of a word that no document has.
func (r *search) rarest() float64 { return inverse(len(r.docs), 0) }

// inverse is BM25's inverse document frequency.
func inverse(docs, having int) float64 {
	return math.Log(1 + (float64(docs-having)+0.5)/(float64(having)+0.5))
}

// add looks the alternatives up as if they were one term and adds what they
// are worth to every document that has one. It reports whether any has.
func (r *search) add(terms []alternative, weight float64, counts bool) (bool, error) {
	if err := r.ctx.Err(); err != nil {
		return false, err
	}
	defer r.work.forget()
	for _, t := range terms {
		if err := r.gather(t); err != nil {
			return false, err
		}
	}
	if len(r.work.touched) == 0 {
		return false, nil
	}
	idf := inverse(len(r.docs), len(r.work.touched))
	if counts {
		r.mass += idf
	}
	r.spread(weight*idf, idf, counts)
	return true, nil
}

// gather pools the occurrences of one term over the fields.
func (r *search) gather(t alternative) error {
	for f := range fieldCount {
		if err := r.gatherField(t, f); err != nil {
			return fmt.Errorf("read postings: %w", err)
		}
	}
	return nil
}

func (r *search) gatherField(t alternative, f field) error {
	postings, err := r.reader.TermFieldReader(r.ctx, []byte(t.term), f.String(), true, false, false)
	if err != nil {
		return err
	}
	factor := r.factor[f]
	var doc blevesearch.TermFieldDoc
	for {
		next, err := postings.Next(doc.Reset())
		if next == nil || err != nil {
			return cmp.Or(err, postings.Close())
		}
		ord := r.ordOf[next.ID.Value()]
		if r.work.freq[ord] == 0 {
			r.work.touched = append(r.work.touched, ord)
		}
		r.work.freq[ord] += t.weight * float64(factor[ord]) * float64(next.Freq)
	}
}

// spread saturates the pooled occurrences and adds them to documents and upstreams.
func (r *search) spread(worth, idf float64, counts bool) {
	work := r.work
	for _, ord := range work.touched {
		part := worth * work.freq[ord] * (r.weigh.k1 + 1) / (work.freq[ord] + r.weigh.k1)
		if work.score[ord] == 0 {
			work.hit = append(work.hit, ord)
		}
		work.score[ord] += part
		if counts {
			work.cover[ord] += idf
		}
		up := r.upstreamOf[ord]
		work.best[up] = max(work.best[up], part)
	}
	for _, ord := range work.touched {
		up := r.upstreamOf[ord]
		work.evidence[up] += work.best[up]
		work.best[up] = 0
	}
}

// addUpstreams gives every document that matched a share of what speaks for its
// upstream: that its tools, together, have the words asked for.
func (r *search) addUpstreams() {
	for _, ord := range r.work.hit {
		r.work.score[ord] += r.weigh.upstream * r.work.evidence[r.upstreamOf[ord]]
	}
}

// results ranks: exact names first, then by score, then by id.
func (r *search) results(limit int) Results {
	r.restrict()
	pinned := r.pin()
	slices.SortFunc(r.work.hit, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.work.score[b], r.work.score[a]), cmp.Compare(a, b))
	})
	res := Results{Total: len(r.work.hit)}
	for _, ord := range r.work.hit[:min(len(r.work.hit), orDefault(limit))] {
		res.Hits = append(res.Hits, Hit{ID: r.docs[ord].ID, Score: r.work.score[ord]})
	}
	res.Weak = !pinned && r.weak()
	res.Unmatched, res.Suggest = r.suggest()
	return res
}

// restrict drops the hits of other upstreams than the one asked for.
func (r *search) restrict() {
	if r.req.upstream == "" {
		return
	}
	r.work.hit = slices.DeleteFunc(r.work.hit, func(ord int32) bool {
		other := r.docs[ord].ID.Upstream != r.req.upstream
		if other {
			r.work.score[ord], r.work.cover[ord] = 0, 0
		}
		return other
	})
}

// pin lifts the documents above all others whose exact name or id is the query,
// and next those whose name stands in it. It reports whether there is one.
func (r *search) pin() bool {
	top := 0.0
	for _, ord := range r.work.hit {
		top = max(top, r.work.score[ord])
	}
	lifted := map[int32]bool{}
	lift := func(key string, by float64) {
		for _, ord := range r.pins[key] {
			if lifted[ord] || r.req.upstream != "" && r.docs[ord].ID.Upstream != r.req.upstream {
				continue
			}
			lifted[ord] = true
			if r.work.score[ord] == 0 {
				r.work.hit = append(r.work.hit, ord)
			}
			r.work.score[ord] += by
		}
	}
	lift(r.req.whole, 2*top+2)
	for _, key := range r.req.parts {
		lift(key, top+1)
	}
	return len(lifted) > 0
}

// weakCover is the share of the worth of a query's words below which the best hit is a guess.
const weakCover = 0.35

// weak reports whether nothing fits well: the best hit has too little of what was asked for.
func (r *search) weak() bool {
	if len(r.work.hit) == 0 {
		return true
	}
	best := 0.0
	for _, ord := range r.work.hit[:min(3, len(r.work.hit))] {
		best = max(best, r.work.cover[ord])
	}
	return best < weakCover*r.mass
}
