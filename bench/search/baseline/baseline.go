// Package baseline holds other ways to search the same tools, to compare with:
// [Default] is bleve with its default settings, [About] the same with
// the words about the server, [Proxy] is bleve set up the way that mcpproxy-go
// does it. They rank; none says that nothing fits. [Scorch] and [Lean] are Default
// in the engine that bleve itself makes indexes with, to measure what that takes.
package baseline

import (
	"context"
	"fmt"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/standard"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"

	"sallyport/internal/testutil/ireval"
)

// Index searches one set. It is safe for concurrent use.
type Index struct {
	index bleve.Index
	ask   func(text string) query.Query
	order []string // nil is bleve's own, by score alone
}

// Default indexes the server's name, the tool's name, its description and its
// schema as they are, with bleve's default mapping (TF-IDF, the standard
// analyzer), and asks with a match query over all of it.
func Default(s *ireval.Set) (*Index, error) { return open(s, bleve.NewIndexMapping(), match, texts) }

// About is Default over the server's title and description as well, which our index reads too.
func About(s *ireval.Set) (*Index, error) {
	return open(s, bleve.NewIndexMapping(), match, func(e ireval.Entry) map[string]string {
		doc := texts(e)
		doc["about"] = e.About
		return doc
	})
}

func match(text string) query.Query { return bleve.NewMatchQuery(text) }

func texts(e ireval.Entry) map[string]string {
	return map[string]string{
		"name": e.Tool.Wire, "server": e.Server, "title": e.Tool.Title,
		"description": e.Tool.Description, "params": string(e.Tool.Input),
	}
}

// Proxy indexes and asks as mcpproxy-go's internal/index does: the names whole,
// the description, the schema as text, and all of it in one more field; the query
// is an exact name, the beginning or a part of one, or words of any field.
func Proxy(s *ireval.Set) (*Index, error) {
	tools := bleve.NewDocumentMapping()
	for field, analyzer := range map[string]string{
		"tool_name": keyword.Name, "full_tool_name": keyword.Name, "server_name": keyword.Name,
		"description": standard.Name, "params_json": standard.Name, "searchable_text": standard.Name,
	} {
		text := bleve.NewTextFieldMapping()
		text.Analyzer = analyzer
		tools.AddFieldMappingsAt(field, text)
	}
	m := bleve.NewIndexMapping()
	m.DefaultMapping = tools
	return open(s, m, proxyQuery, func(e ireval.Entry) map[string]string {
		full := e.Server + ":" + e.Tool.Wire
		return map[string]string{
			"tool_name": e.Tool.Wire, "full_tool_name": full, "server_name": e.Server,
			"description": e.Tool.Description, "params_json": string(e.Tool.Input),
			"searchable_text": strings.Join([]string{e.Tool.Wire, full, e.Tool.Description, string(e.Tool.Input)}, " "),
		}
	})
}

func proxyQuery(text string) query.Query {
	all := bleve.NewBooleanQuery()
	should := func(q query.BoostableQuery, field string, boost float64) {
		q.SetBoost(boost)
		if on, ok := q.(query.FieldableQuery); ok && field != "" {
			on.SetField(field)
		}
		all.AddShould(q)
	}
	should(bleve.NewTermQuery(text), "tool_name", 5)
	should(bleve.NewTermQuery(text), "full_tool_name", 4)
	should(bleve.NewPrefixQuery(text), "tool_name", 3)
	if strings.Contains(text, "_") {
		should(bleve.NewWildcardQuery("*"+text+"*"), "tool_name", 2.5)
	}
	should(bleve.NewMatchQuery(text), "", 1)
	should(bleve.NewMatchQuery(text), "searchable_text", 1.5)
	return all
}

func open(s *ireval.Set, m mapping.IndexMapping, ask func(string) query.Query, doc func(ireval.Entry) map[string]string) (*Index, error) {
	index, err := bleve.NewMemOnly(m)
	if err != nil {
		return nil, fmt.Errorf("make baseline: %w", err)
	}
	batch := index.NewBatch()
	for _, e := range s.Entries {
		if err := batch.Index(e.Judged, doc(e)); err != nil {
			return nil, fmt.Errorf("make baseline: %w", err)
		}
	}
	if err := index.Batch(batch); err != nil {
		return nil, fmt.Errorf("make baseline: %w", err)
	}
	return &Index{index, ask, []string{"-_score", "_id"}}, nil
}

// Search returns the judged ids of the best tools, best first.
func (ix *Index) Search(ctx context.Context, text string, limit int) ([]string, error) {
	req := bleve.NewSearchRequestOptions(ix.ask(text), limit, 0, false)
	if ix.order != nil {
		req.SortBy(ix.order)
	}
	res, err := ix.index.SearchInContext(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search baseline: %w", err)
	}
	var ids []string
	for _, hit := range res.Hits {
		ids = append(ids, hit.ID)
	}
	return ids, nil
}

// Close releases the index.
func (ix *Index) Close() error { return ix.index.Close() }
