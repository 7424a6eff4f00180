package recognizer

import (
	"context"

	"sallyport/internal/names"
	"sallyport/internal/pii"
)

// Local finds names and addresses with the built-in model. Nothing leaves the process.
type Local struct{ model *names.Model }

// NewLocal loads the model.
func NewLocal() (*Local, error) {
	m, err := names.Load()
	return &Local{m}, err
}

// localKinds are the kinds that are hidden: a place that is not part of an address is not personal.
var localKinds = map[string]pii.Kind{names.Person: pii.Name, names.Address: pii.Address}

// Find is like [Client.Find]. The only error is that of an ended context.
func (l *Local) Find(ctx context.Context, _ string, texts []string) ([][]pii.Finding, error) {
	found := make([][]pii.Finding, len(texts))
	for i, text := range texts {
		for _, p := range pieces(i, text) {
			if ctx.Err() != nil {
				return nil, faultf("it was not finished in time")
			}
			for _, s := range l.model.Find(p.value) {
				if kind := localKinds[s.Sort]; kind != "" {
					found[i] = append(found[i], pii.Finding{Kind: kind, Start: p.offset + s.Start, End: p.offset + s.End})
				}
			}
		}
		found[i] = mergeOverlaps(found[i])
	}
	return found, nil
}

// Close does nothing.
func (l *Local) Close() {}
