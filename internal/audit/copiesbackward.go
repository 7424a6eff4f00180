package audit

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"sallyport/internal/store"
)

// CopiedBatch is what a gateway wrote at once to its copy.
type CopiedBatch struct {
	// Position is that in the store: a later batch of any gateway has a larger one.
	Position uint64
	Of       Copied
	// Records are the newest first. Damaged is the number of lines that are no records, or were edited.
	Records []Record
	Damaged int
}

// copyWindow is how far one step back goes, in positions.
const copyWindow = 512

// ReadCopiesBackward yields the batches of copies with a position below before (0: all), the newest first. It holds those of one window
// in memory. An error ends it.
func ReadCopiesBackward(ctx context.Context, in *store.Store, chains []Copied, before uint64) iter.Seq2[CopiedBatch, error] {
	return func(yield func(CopiedBatch, error) bool) {
		r := &backwardCopies{chains: map[string]Copied{}}
		for _, c := range chains {
			r.chains[c.Chain] = c
		}
		end, err := r.open(ctx, in)
		if before > 0 {
			end = min(end, before)
		}
		for err == nil && end > r.first {
			start := max(r.first, end-min(end, copyWindow))
			var batches []CopiedBatch
			if batches, err = r.window(ctx, start, end); err != nil {
				break
			}
			for _, b := range slices.Backward(batches) {
				if !yield(b, nil) {
					return
				}
			}
			end = start
		}
		if err != nil {
			yield(CopiedBatch{}, err)
		}
	}
}

// backwardCopies reads copies from their end.
type backwardCopies struct {
	log    *store.Log
	chains map[string]Copied
	// first is the first position of a record.
	first uint64
}

// open returns the position behind the newest batch.
func (r *backwardCopies) open(ctx context.Context, in *store.Store) (end uint64, err error) {
	r.first = 1
	for chain := range r.chains {
		m, err := NewMirror(in, chain, 0, 0)
		if err != nil {
			return 0, err
		}
		r.log = m.log
		entry, err := m.newest(ctx)
		if err != nil {
			return 0, err
		}
		end = max(end, entry.Revision+1)
	}
	if end <= 1 {
		return 0, nil
	}
	for entry, err := range r.log.Read(ctx, nil, 1) {
		r.first = entry.Revision
		return end, err
	}
	return 0, nil
}

// window returns the batches from a position to before another.
func (r *backwardCopies) window(ctx context.Context, start, end uint64) (all []CopiedBatch, err error) {
	for entry, err := range r.log.Read(ctx, nil, start) {
		if err != nil || entry.Revision >= end {
			return all, err
		}
		if len(entry.Key) != 2 {
			continue
		}
		if of, ok := r.chains[entry.Key[1]]; ok {
			all = append(all, newBatch(of, entry))
		}
	}
	return all, nil
}

func newBatch(of Copied, entry store.Entry) CopiedBatch {
	b := CopiedBatch{Position: entry.Revision, Of: of}
	lines := bytes.Split(entry.Value, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if r, err := decode(bytes.Clone(line)); err == nil {
			b.Records = append(b.Records, r)
		} else {
			b.Damaged++
		}
	}
	return b
}
