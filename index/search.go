package index

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// search scores the documents of one request with BM25F: the occurrences of a
// term in all fields are pooled, each weighed by its field and that field's
// length, and only then saturated. Sums over fields of separate scores rank worse.
type search struct {
	*snapshot
	req  request
	work *scratch
	asked
	unmatched []missing
	// used holds the terms that were added.
	used map[string]bool
	// said are the phrases of the query, inPhrase the length of the longest that a stem is in,
	// wishOf the wish of a stem.
	said             []said
	senses           []sense // what they mean
	inPhrase, wishOf map[string]int
	err              error
	// likeness is how near each document is in meaning, 0 where that is not known.
	likeness []float32
	// evidence is what speaks for each upstream.
	evidence []float64
	// own is the best hit by the words and their meaning, short how much it lacks to be
	// an answer; partFits says that a tool fits one of several needs well.
	own      int32
	short    float64
	partFits bool
}

// scratch is the memory of one search, by ord.
type scratch struct {
	score    []float64
	marks    []uint64 // what of the query a document has, see asked
	hit      []int32  // ords with a score
	freq     []float64
	touched  []int32 // ords with a freq, for the term at hand
	likeness []float32
}

func newScratch(docs int) *scratch {
	return &scratch{score: make([]float64, docs), marks: make([]uint64, docs), freq: make([]float64, docs)}
}

func (w *scratch) reset() {
	for _, ord := range w.hit {
		w.score[ord], w.marks[ord] = 0, 0
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
	if err := (scorer{run}).score(ctx); err != nil {
		return Results{}, err
	}
	if err := run.judge(ctx); err != nil {
		return Results{}, err
	}
	res := run.results(q)
	return res, run.err
}

// list returns the tools of one upstream by name, or reports an unknown upstream.
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

// rarest is the worth of a word that no document has.
func (r *search) rarest() float64 { return inverse(len(r.docs), 0) }

// inverse is BM25's inverse document frequency.
func inverse(docs, having int) float64 {
	return math.Log(1 + (float64(docs-having)+0.5)/(float64(having)+0.5))
}

// add looks the alternatives up as if they were one term and adds what they
// are worth to every document that has one, and marks it. It returns how rare
// that is, 0 if no document has any.
func (r *search) add(ctx context.Context, terms []alternative, weight float64, mark uint64) (idf float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	defer r.work.forget()
	for _, t := range terms {
		if err := r.gather(ctx, t); err != nil {
			return 0, err
		}
	}
	if len(r.work.touched) == 0 {
		return 0, nil
	}
	idf = inverse(len(r.docs), len(r.work.touched))
	r.spread(weight*idf, mark)
	return idf, nil
}

// gather reads the pooled occurrences of one term.
func (r *search) gather(ctx context.Context, t alternative) error {
	work, unit := r.work, t.weight/freqUnit
	return postings(ctx, r.reader, t.term, func(number, freq uint64) {
		ord := r.ordOf[number]
		part := unit * float64(freq)
		if work.freq[ord] == 0 && part > 0 {
			work.touched = append(work.touched, ord)
		}
		work.freq[ord] += part
	})
}

// pinned returns the documents that a key pins, in their order.
func (r *search) pinned(key string) (ords []int32) {
	err := postings(context.Background(), r.reader, boxTerm(pinBox(key)), func(number, _ uint64) {
		if ord := r.ordOf[number]; slices.Contains(pinKeys(&r.docs[ord]), key) {
			ords = append(ords, ord)
		}
	})
	r.err = cmp.Or(r.err, err)
	slices.Sort(ords)
	return ords
}

// spread saturates the pooled occurrences and adds their worth to the documents.
func (r *search) spread(worth float64, mark uint64) {
	work := r.work
	for _, ord := range work.touched {
		part := worth * work.freq[ord] * (r.weigh.k1 + 1) / (work.freq[ord] + r.weigh.k1)
		if work.score[ord] == 0 && part > 0 {
			work.hit = append(work.hit, ord)
		}
		work.score[ord] += part
		work.marks[ord] |= mark
	}
}
