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
	// denseDocs is how many documents that have no word of the query may come in
	// for what they mean, denseFloor how near they must be, denseShare what that
	// must be worth in parts of the best score: no noise where words say all.
	denseDocs  = 50
	denseFloor = 0.3
	denseShare = 0.15
	// denseCover is how much of the query a document must have for none without a word of it to be looked at.
	denseCover = 0.9
	// denseRun is how many vectors are worth a goroutine.
	denseRun = 16_384
)

// vector returns what the document at hand means: its name, title, first sentence and
// upstream, each of a weight of its own however long it is. A zero vector is
// like nothing.
func (l *learner) vector() wordvec.Vector {
	v, ok := l.words.model.Embed(l.part(fieldName), l.part(fieldTitle), l.part(fieldLead), l.part(fieldUpstream))
	if !ok {
		return wordvec.Vector{}
	}
	return v
}

func (l *learner) part(f field) wordvec.Part {
	part := wordvec.Part{Weight: l.weigh.vector[f]}
	for _, s := range l.texts[f] {
		part.Words = append(part.Words, s.vector...)
	}
	return part
}

// meaningWords leaves out numbers: they mean nothing.
func meaningWords(m *wordvec.Model, words []queryWord) (found []wordvec.Word) {
	for _, w := range words {
		if r, _ := utf8.DecodeRuneInString(w.text); unicode.IsLetter(r) {
			found = append(found, m.Find(w.text))
		}
	}
	return found
}

// compare sets how like each document is to what the query means, or each that
// has words of it where these say all. It leaves that empty where the query is
// not in English.
func (r *search) compare() {
	v, ok := r.words.model.Embed(wordvec.Part{Words: meaningWords(r.words.model, r.req.list), Weight: 1})
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

// blend adds to each document's score what it means, the more the less of the
// query its words explain. The nearest of those that have none of its words come in.
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
			r.lift(ord, by)
		}
	}
}

// gain is more than likeness where there is much of it: to be a little alike says nothing.
func gain(likeness float32) float64 {
	like := float64(max(likeness, 0))
	return like * math.Sqrt(like)
}

// nearest returns the documents nearest in meaning among those without a score.
func (r *search) nearest() []int32 {
	var top []int32
	order := func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.likeness[b], r.likeness[a]), cmp.Compare(a, b))
	}
	floor := float32(denseFloor)
	for i, near := range r.likeness {
		ord := int32(i)
		if near < floor || r.work.score[i] != 0 || !r.searched(ord) {
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
