package baseline

// Ordered is the same index with an order among tools of one score, which is bleve's chance otherwise.
func (ix *Index) Ordered() *Index { return &Index{ix.index, ix.ask, []string{"-_score", "_id"}} }
