package index

import (
	"cmp"
	"context"
	"fmt"
	"math"

	blevesearch "github.com/blevesearch/bleve_index_api"
)

// search scores the documents of one request with BM25F: the occurrences of a
// term in all fields are pooled, each weighed by its field and that field's
// length, and only then saturated. Sums over fields of separate scores rank worse.
type search struct {
	*snapshot
	req  request
	work *scratch
	// mass is the worth of all words asked for, cover of those that a document has.
	mass      float64
	unmatched []queryWord
	// used holds the terms that were added.
	used map[string]bool
}

// scratch is the memory of one search, by ord.
type scratch struct {
	score, cover []float64
	hit          []int32 // ords with a score
	freq         []float64
	touched      []int32 // ords with a freq, for the term at hand
}

func newScratch(docs int) *scratch {
	return &scratch{score: make([]float64, docs), cover: make([]float64, docs), freq: make([]float64, docs)}
}

func (w *scratch) reset() {
	for _, ord := range w.hit {
		w.score[ord], w.cover[ord] = 0, 0
	}
	w.forget()
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
	if req.empty() || req.unknown != "" && q.Upstream != "" {
		return s.list(req, q.Limit), nil
	}
	work := s.scratch.Get().(*scratch)
	defer func() {
		work.reset()
		s.scratch.Put(work)
	}()
	run := &search{snapshot: s, req: req, work: work}
	if err := run.score(ctx); err != nil {
		return Results{}, err
	}
	return run.results(q.Limit), nil
}

// list returns the tools of one upstream by name, or says that there is no such upstream.
func (s *snapshot) list(req request, limit int) Results {
	var res Results
	for _, up := range s.upstreams {
		if up.id != req.upstream {
			continue
		}
		res.Total = up.last - up.first
		for _, d := range s.docs[up.first:min(up.last, up.first+orDefault(limit))] {
			res.Hits = append(res.Hits, Hit{ID: d.ID, Kind: d.Kind})
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
	return min(limit, maxLimit)
}

// alternative is a term to look for and what it is worth.
type alternative struct {
	term   string
	weight float64
}

// score adds up the terms: the words themselves, or what is like them where no
// document has them; neighbours joined; synonyms; feedback; the upstreams.
func (r *search) score(ctx context.Context) error {
	r.used = map[string]bool{}
	for _, w := range r.req.words {
		r.used[w.stem] = true
		if err := r.scoreWord(ctx, w); err != nil {
			return err
		}
	}
	for _, j := range r.req.joined {
		if err := r.scoreExtra(ctx, string(r.words.stem.stem([]byte(j))), r.weigh.joined); err != nil {
			return err
		}
	}
	for _, w := range r.req.words {
		for _, syn := range r.related[w.stem] {
			if err := r.scoreExtra(ctx, syn, r.weigh.synonym); err != nil {
				return err
			}
		}
	}
	if err := r.feedBack(ctx); err != nil {
		return err
	}
	r.addUpstreams()
	r.fitNames()
	return nil
}

// scoreExtra adds a term that nobody wrote, unless it was added before.
func (r *search) scoreExtra(ctx context.Context, term string, weight float64) error {
	if r.used[term] {
		return nil
	}
	r.used[term] = true
	_, err := r.add(ctx, []alternative{{term, 1}}, weight, 0)
	return err
}

func (r *search) scoreWord(ctx context.Context, w queryWord) error {
	if w.stop {
		_, err := r.add(ctx, []alternative{{w.stem, 1}}, r.weigh.stop, 0)
		return err
	}
	found, err := r.add(ctx, []alternative{{w.stem, 1}}, 1, 1)
	if found || err != nil {
		return err
	}
	return r.scoreMissing(ctx, w)
}

// scoreMissing looks for what means the same as a word that no document has, or is written alike.
func (r *search) scoreMissing(ctx context.Context, w queryWord) error {
	var same []alternative
	for _, syn := range r.related[w.stem] {
		same = append(same, alternative{syn, 1})
	}
	if found, err := r.add(ctx, same, r.weigh.standIn, r.weigh.standIn); found || err != nil {
		return err
	}
	r.unmatched = append(r.unmatched, w)
	near := r.near(w)
	before := r.mass
	found, err := r.add(ctx, near, r.weigh.fuzzy, r.weigh.fuzzy)
	switch {
	case !found:
		r.mass += r.rarest()
	case near[0].weight >= sureLike: // a slip of the pen takes nothing from how well the rest fits
		r.mass = before + r.weigh.fuzzy*(r.mass-before)
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
// are worth to every document that has one; cover is how much of the word that
// was asked for such a document then has, 0 if it does not count. It reports
// whether any document has one.
func (r *search) add(ctx context.Context, terms []alternative, weight, cover float64) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer r.work.forget()
	for _, t := range terms {
		if err := r.gather(ctx, t); err != nil {
			return false, err
		}
	}
	if len(r.work.touched) == 0 {
		return false, nil
	}
	idf := inverse(len(r.docs), len(r.work.touched))
	if cover > 0 {
		r.mass += idf
	}
	r.spread(weight*idf, cover*idf)
	return true, nil
}

// gather pools the occurrences of one term over the fields.
func (r *search) gather(ctx context.Context, t alternative) error {
	for f := range fieldCount {
		if err := r.gatherField(ctx, t, f); err != nil {
			return fmt.Errorf("read postings: %w", err)
		}
	}
	return nil
}

func (r *search) gatherField(ctx context.Context, t alternative, f field) error {
	postings, err := r.reader.TermFieldReader(ctx, []byte(t.term), f.String(), true, false, false)
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
		part := t.weight * float64(factor[ord]) * float64(next.Freq)
		if r.work.freq[ord] == 0 && part > 0 {
			r.work.touched = append(r.work.touched, ord)
		}
		r.work.freq[ord] += part
	}
}

// spread saturates the pooled occurrences and adds their worth to the documents.
func (r *search) spread(worth, cover float64) {
	work := r.work
	for _, ord := range work.touched {
		part := worth * work.freq[ord] * (r.weigh.k1 + 1) / (work.freq[ord] + r.weigh.k1)
		if work.score[ord] == 0 && part > 0 {
			work.hit = append(work.hit, ord)
		}
		work.score[ord] += part
		work.cover[ord] += cover
	}
}
