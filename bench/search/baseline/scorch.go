package baseline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"

	"sallyport/internal/testutil/ireval"
)

// Scorch is Default in bleve's own engine, in memory as ours is, which is faster
// than the one that Default has; the tools come in batches of so many.
func Scorch(s *ireval.Set, size int) (*Index, error) {
	return inMemory(s, size, bleve.NewIndexMapping(), func(e ireval.Entry) any { return texts(e) })
}

// Lean is the smallest and fastest that bleve is while it answers as Scorch does, score by score: nothing is kept but the
// words of all texts together, which is where a match query looks, and one batch makes one segment, since in memory
// none are merged.
func Lean(s *ireval.Set) (*Index, error) {
	return inMemory(s, len(s.Entries), lean(), func(e ireval.Entry) any {
		t := texts(e)
		return map[string]string{"words": strings.Join([]string{t["name"], t["server"], t["title"], t["description"], t["params"]}, "\n")}
	})
}

// lean has one field, and neither the texts themselves, places of words, values to sort by, nor a field of all fields.
func lean() mapping.IndexMapping {
	words := bleve.NewTextFieldMapping()
	words.Store, words.IncludeTermVectors, words.DocValues, words.IncludeInAll = false, false, false, false
	m := bleve.NewIndexMapping()
	m.DefaultMapping = bleve.NewDocumentStaticMapping()
	m.DefaultMapping.AddFieldMappingsAt("words", words)
	m.DefaultMapping.AddSubDocumentMapping("_all", bleve.NewDocumentDisabledMapping())
	m.DefaultField = "words"
	return m
}

func inMemory(s *ireval.Set, size int, m mapping.IndexMapping, doc func(ireval.Entry) any) (*Index, error) {
	index, err := bleve.NewUsing("", m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("make baseline: %w", err)
	}
	for entries := range slices.Chunk(s.Entries, size) {
		batch := index.NewBatch()
		for _, e := range entries {
			if err := batch.Index(e.Judged, doc(e)); err != nil {
				return nil, fmt.Errorf("make baseline: %w", err)
			}
		}
		if err := index.Batch(batch); err != nil {
			return nil, fmt.Errorf("make baseline: %w", err)
		}
	}
	return &Index{index: index, ask: match}, nil
}
