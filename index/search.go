package index

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// search scores the documents of one request with BM25F: it pools the occurrences of
// a term over all fields, weighted by field and field length, before saturation.
// Adding up separate scores per field ranks worse.
type search struct {
	*snapshot
	req  request
	work *scratch
	coverage
	unmatched []missingWord
	// used holds the terms that are already scored.
	used map[string]bool
	// matchedPhrases holds the phrases of the query, inPhrase the length of the longest phrase that
	// a stem is in, termIndex the index of a stem's term in asked.
	matchedPhrases      []phraseMatch
	concepts            []queryConcept // the concepts of said
	inPhrase, termIndex map[string]int
	err                 error
	// likeness holds the similarity of each document, 0 if it is unknown.
	likeness []float32
	// evidence is the mean score of the best tools of each upstream.
	evidence []float64
	// bestHit is the best hit by words and meaning, shortfall by how much it misses the confidence threshold.
	bestHit   int32
	shortfall float64
	// needs counts the subqueries with raised documents.
	needs int
}

// scratch holds the reusable buffers of one search, by ord.
type scratch struct {
	score    []float64
	marks    []uint64 // see asked
	hit      []int32  // ords with a score
	freq     []float64
	touched  []int32 // ords with a freq, for the current term
	likeness []float32
}

func newScratch(docs int) *scratch {
	return &scratch{score: make([]float64, docs), marks: make([]uint64, docs), freq: make([]float64, docs)}
}

func (w *scratch) reset() {
	for _, ord := range w.hit {
		w.score[ord], w.marks[ord] = 0, 0
	}
	w.resetTerm()
	w.hit = w.hit[:0]
}

// resetTerm clears the state of the current term.
func (w *scratch) resetTerm() {
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
	if err := run.refine(ctx); err != nil {
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

// maxIDF returns the weight of a word that no document has.
func (r *search) maxIDF() float64 { return inverseDocFreq(len(r.docs), 0) }

// inverseDocFreq returns BM25's inverse document frequency.
func inverseDocFreq(docs, having int) float64 {
	return math.Log(1 + (float64(docs-having)+0.5)/(float64(having)+0.5))
}

// add looks up the alternatives as if they were one term, adds its score to every
// document that has one, and marks it. It returns the inverse document frequency, 0
// if no document has any.
func (r *search) add(ctx context.Context, terms []alternative, weight float64, mark uint64) (idf float64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	defer r.work.resetTerm()
	for _, t := range terms {
		if err := r.gather(ctx, t); err != nil {
			return 0, err
		}
	}
	if len(r.work.touched) == 0 {
		return 0, nil
	}
	idf = inverseDocFreq(len(r.docs), len(r.work.touched))
	r.addScores(weight*idf, mark)
	return idf, nil
}

// gather adds the pooled occurrences of one term to the frequencies.
func (r *search) gather(ctx context.Context, t alternative) error {
	work, unit := r.work, t.weight/freqUnit
	return forEachPosting(ctx, r.reader, t.term, func(number, freq uint64) {
		ord := r.ordOf[number]
		part := unit * float64(freq)
		if work.freq[ord] == 0 && part > 0 {
			work.touched = append(work.touched, ord)
		}
		work.freq[ord] += part
	})
}

// pinnedDocs returns the documents that a key pins, in ascending order.
func (r *search) pinnedDocs(key string) (ords []int32) {
	err := forEachPosting(context.Background(), r.reader, bucketTerm(pinBucket(key)), func(number, _ uint64) {
		if ord := r.ordOf[number]; slices.Contains(pinKeys(&r.docs[ord]), key) {
			ords = append(ords, ord)
		}
	})
	r.err = cmp.Or(r.err, err)
	slices.Sort(ords)
	return ords
}

// addScores saturates the pooled frequencies and adds them, times worth, to the scores.
func (r *search) addScores(worth float64, mark uint64) {
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
