package index

import "context"

// Weigh returns the stems of the words in text that say something, each with how
// telling it is: the rarer in the names and first sentences of the documents, the
// more. It reads a text as Search does. After Close there are none.
func (ix *Index) Weigh(ctx context.Context, text string) map[string]float64 {
	for {
		s := ix.now.Load()
		if s == nil {
			return nil
		}
		if weights, ok := s.weights(ctx, text); ok {
			return weights
		}
	}
}

// weights is Weigh unless the snapshot is retired, which ok tells.
func (s *snapshot) weights(ctx context.Context, text string) (all map[string]float64, ok bool) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.retired {
		return nil, false
	}
	all, run := map[string]float64{}, &search{snapshot: s}
	for _, w := range s.parse(Query{Text: text}).words {
		if w.stop {
			continue
		}
		having, err := run.having(ctx, w.stem)
		if err != nil {
			return nil, true
		}
		all[w.stem] = inverse(len(s.docs), having)
	}
	return all, true
}
