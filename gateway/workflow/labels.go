package workflow

import (
	"context"
	"encoding/json"
	"sync"

	"sallyport/gateway/toolcall"
)

// origins are the data labels of a run. Labels that are logged are not logged again. It is safe for concurrent use.
type origins struct {
	labels Labels // nil where there are none

	mu    sync.Mutex
	known map[string]bool
}

// recall adds the logged labels to the run's session.
func (o *origins) recall(ctx context.Context, logged []json.RawMessage) {
	if o.labels == nil {
		return
	}
	for _, raw := range logged {
		var read []toolcall.Origin
		if json.Unmarshal(raw, &read) == nil {
			o.addNew(read)
			o.labels.AddOrigins(ctx, read)
		}
	}
}

// addNew adds the labels, and returns those that are new.
func (o *origins) addNew(read []toolcall.Origin) (fresh []toolcall.Origin) {
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

// newLabels returns the labels since the last call as JSON for an event, nil for none.
func (o *origins) newLabels(ctx context.Context) json.RawMessage {
	if o.labels == nil {
		return nil
	}
	news := o.addNew(o.labels.SessionOrigins(ctx))
	if len(news) == 0 {
		return nil
	}
	data, err := json.Marshal(news)
	if err != nil { // texts and times
		return nil
	}
	return data
}
