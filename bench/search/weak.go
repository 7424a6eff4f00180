package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"sallyport/index/wordvec"
	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// fused is our search fused with the ranking of a weak embedding model, as an endpoint of the settings might have one.
// It shows what a bad model costs, and is not among the engines of a whole run.
const fused = "sallyport+weak"

// weakModel ranks tools by the mean of the built-in vectors of all words, which knows less than the search itself.
type weakModel struct {
	set     *ireval.Set
	model   *wordvec.Model
	vectors []wordvec.Vector
}

// weakDepth is how many tools the model ranks, as package embeddings does.
const weakDepth = 50

func newWeakModel(s *ireval.Set) (*weakModel, error) {
	model, err := wordvec.New()
	if err != nil {
		return nil, err
	}
	m := &weakModel{s, model, make([]wordvec.Vector, len(s.Entries))}
	for i, e := range s.Entries {
		m.vectors[i], _ = m.embed(strings.Join([]string{e.Server, e.Tool.Wire, e.Tool.Title, e.Tool.Description, e.About}, " "))
	}
	return m, nil
}

func (m *weakModel) embed(text string) (wordvec.Vector, bool) {
	part := wordvec.Part{Weight: 1}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		part.Words = append(part.Words, m.model.Find(strings.ToLower(word)))
	}
	return m.model.Embed(part)
}

// rank returns the most similar tools, best first.
func (m *weakModel) rank(text string) (ids []tool.ID) {
	v, ok := m.embed(text)
	if !ok {
		return nil
	}
	order := make([]int, len(m.vectors))
	likeness := make([]float32, len(m.vectors))
	for i := range order {
		order[i], likeness[i] = i, v.Likeness(&m.vectors[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(likeness[b], likeness[a]) })
	for _, i := range order[:min(weakDepth, len(order))] {
		ids = append(ids, m.set.Entries[i].Tool.ID)
	}
	return ids
}

func openFused(s *ireval.Set) (engine, error) {
	m, err := newWeakModel(s)
	if err != nil {
		return engine{}, err
	}
	return sallyport(fused, s, func(_ context.Context, text string) []tool.ID { return m.rank(text) })
}

// alone is a search without another ranking.
func alone(context.Context, string) []tool.ID { return nil }
