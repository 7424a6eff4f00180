package embeddings

import (
	"context"
	"fmt"

	"sallyport/internal/tool"
)

// Rankings ranks documents for each query, as [Ranker.Rank] does, with vectors that it requests for this call. Errors are for a person
// to read.
func Rankings(ctx context.Context, s Settings, docs []Document, queries []string) ([][]tool.ID, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var texts []string
	for _, d := range docs {
		texts = append(texts, s.DocumentPrefix+normalizeText(d.Text))
	}
	for _, q := range queries {
		texts = append(texts, s.QueryPrefix+normalizeText(q))
	}
	all, err := c.embedAll(ctx, texts)
	if err != nil {
		return nil, err
	}
	items := make([]item, len(docs))
	for i, d := range docs {
		items[i] = item{d.ID, all[i]}
	}
	found := make([][]tool.ID, len(queries))
	for i := range queries {
		found[i] = nearest(items, all[len(docs)+i], nil)
	}
	return found, nil
}

// embedAll requests vectors of one length, in batches.
func (c *client) embedAll(ctx context.Context, texts []string) (all []vector, err error) {
	for len(texts) > 0 {
		n := batchSize(texts)
		batch, cancel := context.WithTimeout(ctx, maxRequest)
		some, err := c.embed(batch, texts[:n])
		cancel()
		if err != nil {
			return nil, err
		}
		for _, v := range some {
			if all = append(all, v); len(v.values) != len(all[0].values) {
				return nil, fmt.Errorf("it sent vectors of %d and of %d numbers", len(all[0].values), len(v.values))
			}
		}
		texts = texts[n:]
	}
	return all, nil
}
