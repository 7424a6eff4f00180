package workflow

import (
	"context"
	"encoding/json"
	"sync"

	"sallyport/gateway/toolcall"
)

// origins are the labels of what a run has read. Those that its log knows are not written again. It is safe for concurrent use.
type origins struct {
	labels Labels // nil where there are none

	mu    sync.Mutex
	known map[string]bool
}

// recall notes in the run's session what its log says was read.
func (o *origins) recall(ctx context.Context, logged []json.RawMessage) {
	if o.labels == nil {
		return
	}
	for _, raw := range logged {
		var read []toolcall.Origin
		if json.Unmarshal(raw, &read) == nil {
			o.news(read)
			o.labels.Recall(ctx, read)
		}
	}
}

// news returns those that were not known, and knows them from now on.
func (o *origins) news(read []toolcall.Origin) (fresh []toolcall.Origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, origin := range read {
		if o.known[origin.Label] {
			continue
		}
		if o.known == nil {
			o.known = map[string]bool{}
		}
		o.known[origin.Label] = true
		fresh = append(fresh, origin)
	}
	return fresh
}

// fresh returns what was read since it was asked for last, for an event; nil for nothing.
func (o *origins) fresh(ctx context.Context) json.RawMessage {
	if o.labels == nil {
		return nil
	}
	news := o.news(o.labels.Read(ctx))
	if len(news) == 0 {
		return nil
	}
	data, err := json.Marshal(news)
	if err != nil { // texts and times
		return nil
	}
	return data
}
