package history

import (
	"context"
	"slices"
	"strings"
	"time"

	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/store"
)

const (
	// maxExecutions is the maximum number of execution records.
	maxExecutions = 100_000
	// lookBack is how far back the audit log is read for records that are missing.
	lookBack = 30 * 24 * time.Hour
	// maxRecord is the maximum size of a record, in bytes.
	maxRecord = 4 << 20
)

// executionsBucket returns the bucket of the execution records.
func executionsBucket(in *store.Store, bytes int64, keep time.Duration) (*store.Bucket, error) {
	return in.Bucket("executions", store.Limits{Records: maxExecutions, Age: keep, Bytes: bytes, Record: maxRecord})
}

// Missing lists events of the audit log that have no record.
type Missing struct {
	// Executions are ends of programs, Approvals requests for approval that are or may still be needed.
	Executions, Approvals []audit.Event
}

// FindMissing compares the records, which are kept for some time, with the audit log in a data directory.
func FindMissing(ctx context.Context, dataDir string, keep time.Duration, records *store.Store) (Missing, error) {
	executions, err := executionsBucket(records, maxExecutionBytes, keep)
	if err != nil {
		return Missing{}, err
	}
	approvals, err := records.Bucket("approvals", approval.Limits())
	if err != nil {
		return Missing{}, err
	}
	return findMissing(ctx, audit.Dir(dataDir), keep, executions, approval.NewStore(approvals, nil))
}

func findMissing(ctx context.Context, auditDir string, keep time.Duration, executions *store.Bucket, book *approval.Store) (m Missing, err error) {
	expected, err := audit.Expect(ctx, auditDir, time.Now().Add(-min(keep, lookBack)), maxExecutions)
	if err != nil {
		return m, err
	}
	if m.Executions, err = missingExecutions(ctx, expected.Executions, executions); err != nil {
		return m, err
	}
	m.Approvals, err = missingApprovals(ctx, expected.Approvals, book)
	return m, err
}

func missingExecutions(ctx context.Context, expected []audit.Event, in *store.Bucket) (missing []audit.Event, err error) {
	known, oldest := map[string]bool{}, time.Time{}
	for entry, err := range in.List(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if oldest.IsZero() {
			oldest = entry.Time
		}
		known[entry.Key[len(entry.Key)-1]] = true
	}
	usage, err := in.Usage(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range expected {
		gone := usage.Share > 0.5 && e.Time.Before(oldest) // the store removes the oldest when it is full
		if !known[e.Execution] && !gone {
			known[e.Execution] = true
			missing = append(missing, e)
		}
	}
	return missing, nil
}

func missingApprovals(ctx context.Context, expected map[string]audit.Event, book *approval.Store) (missing []audit.Event, err error) {
	kept, err := book.List(ctx)
	if err != nil {
		return nil, err
	}
	own := map[string]int{}
	for _, a := range kept {
		own[a.Principal]++
		delete(expected, a.ID)
	}
	for _, e := range expected {
		full := own[e.Principal] >= approval.MaxOwn // old ones are overwritten
		if isOpen(e) && !full && time.Since(e.Time) < approval.MaxExpire {
			missing = append(missing, e)
		}
	}
	slices.SortFunc(missing, func(a, b audit.Event) int { return a.Time.Compare(b.Time) })
	return missing, nil
}

// isOpen reports whether an approval is pending, or has an answer that the caller may not have seen.
func isOpen(question audit.Event) bool {
	state, _, _ := strings.Cut(question.Outcome, ":")
	return slices.Contains([]approval.State{approval.Waiting, approval.Allowed, approval.Denied, approval.Done}, approval.State(state))
}
