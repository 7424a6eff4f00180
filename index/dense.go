package index

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"sallyport/index/wordvec"
)

const (
	// denseDocs is the most documents without a word of the query that may match
	// by meaning, denseFloor their least similarity, denseShare the least gain, as
	// a share of the best score. It avoids noise where words match well.
	denseDocs  = 50
	denseFloor = 0.3
	denseShare = 0.15
	// denseCover is the coverage of a document from which on documents that share no word with the query are skipped.
	denseCover = 0.9
	// denseRun is the least number of vectors for another goroutine.
	denseRun = 16_384
)

// vector returns the embedding of the current document: of its name, title, first
// sentence and upstream, each with a fixed weight independent of its length. It
// returns a zero vector, which is similar to none, if too few words are known.
func (l *docAnalyzer) vector() wordvec.Vector {
	v, ok := l.analyzers.model.Embed(l.part(fieldName), l.part(fieldTitle), l.part(fieldLead), l.part(fieldUpstream))
	if !ok {
		return wordvec.Vector{}
	}
	return v
}

func (l *docAnalyzer) part(f field) wordvec.Part {
	part := wordvec.Part{Weight: l.weigh.vector[f]}
	for _, s := range l.texts[f] {
		part.Words = append(part.Words, s.vector...)
	}
	return part
}

// embeddingWords returns the model's words for words, without numbers.
func embeddingWords(m *wordvec.Model, words []queryWord) (found []wordvec.Word) {
	for _, w := range words {
		if r, _ := utf8.DecodeRuneInString(w.text); unicode.IsLetter(r) {
			found = append(found, m.Find(w.text))
		}
	}
	return found
}

// computeLikeness sets likeness to the similarity of each document to the query, or only
// of the documents that match by words if these cover the query. It leaves likeness
// nil if the model does not know the query's words.
func (r *search) computeLikeness() {
	v, ok := r.analyzers.model.Embed(wordvec.Part{Words: embeddingWords(r.analyzers.model, r.req.list), Weight: 1})
	if !ok {
		return
	}
	r.likeness = slices.Grow(r.work.likeness[:0], len(r.docs))[:len(r.docs)]
	r.work.likeness = r.likeness
	if r.bestCover(r.best(coverDocs)) >= denseCover {
		clear(r.likeness)
		for _, ord := range r.work.hit {
			r.likeness[ord] = v.Likeness(&r.vectors[ord])
		}
		return
	}
	var work sync.WaitGroup
	parts := max(1, min(runtime.GOMAXPROCS(0), len(r.docs)/denseRun))
	for i := range parts {
		from, to := i*len(r.docs)/parts, (i+1)*len(r.docs)/parts
		work.Go(func() {
			for ord := from; ord < to; ord++ {
				r.likeness[ord] = v.Likeness(&r.vectors[ord])
			}
		})
	}
	work.Wait()
}

// blend adds each document's similarity to its score, with more weight the less of
// the query the words cover. It also adds the most similar documents without a hit.
func (r *search) blend() {
	if r.likeness == nil {
		return
	}
	top, cover := r.top(), r.bestCover(r.best(coverDocs))
	worth := top * (r.weigh.dense + r.weigh.denseMissing*(1-cover))
	for _, ord := range r.work.hit {
		r.work.score[ord] += worth * gain(r.likeness[ord])
	}
	for _, ord := range r.nearest() {
		if by := worth * gain(r.likeness[ord]); by >= denseShare*top {
			r.boost(ord, by)
		}
	}
}

// gain maps a similarity to a score so that low similarities count little.
func gain(likeness float32) float64 {
	like := float64(max(likeness, 0))
	return like * math.Sqrt(like)
}

// nearest returns the most similar documents among those without a score.
func (r *search) nearest() []int32 {
	var top []int32
	order := func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.likeness[b], r.likeness[a]), cmp.Compare(a, b))
	}
	floor := float32(denseFloor)
	for i, near := range r.likeness {
		ord := int32(i)
		if near < floor || r.work.score[i] != 0 || !r.inScope(ord) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, ord, order)
		top = slices.Insert(top, at, ord)
		if len(top) > denseDocs {
			top = top[:denseDocs]
			floor = r.likeness[top[denseDocs-1]]
		}
	}
	return top
}
