package toolcall

import (
	"strings"
	"sync"
	"time"

	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// RecordedCall is one call that a program made.
type RecordedCall struct {
	Tool tool.ID `json:"tool"`
	// Digest is the digest of the tool's definition at the call, see [tool.Tool.Digest]; "" for a tool of no upstream.
	Digest string `json:"digest,omitempty"`
	// Arguments is the SHA-256 of the arguments in compact JSON, in hex.
	Arguments string `json:"arguments"`
	// Decision is the policy decision ("allow", "deny", "ask" for a pending one), "" without a policy. Rule and Reason say
	// why, Labels are the labels of the result.
	Decision string   `json:"decision,omitempty"`
	Rule     string   `json:"rule,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	// Approval is the id of the approval that was requested for it, "" for none.
	Approval string `json:"approval,omitempty"`
	// Outcome is "ok", the kind of the error, "held" if it waits for approval, or "unfinished" if the program ended before the call.
	Outcome string `json:"outcome"`
	// Replayed says that it was answered from the journal of the resumed execution.
	Replayed bool `json:"replayed,omitempty"`
	// Begun is when it began, the zero time if unknown.
	Begun    time.Time     `json:"begun,omitzero"`
	Duration time.Duration `json:"duration"`
	// Size is the size of the result's text in bytes, or of its structured content if there is no text.
	Size int64 `json:"size,omitempty"`
}

// MaxRecords is the maximum number of recorded calls of an execution.
const MaxRecords = 1000

// Unfinished is the outcome of a call that was in flight when its program ended.
const Unfinished = "unfinished"

// List records the calls of a program.
type List struct {
	mu      sync.Mutex
	records []RecordedCall
	made    int
	bytes   int64 // of the results of all that have ended
	// samples are the beginnings of results, Held is their size in bytes.
	samples      []string
	SampledBytes int
	failures     failures
	kept         kept
}

// Begin records the start of a call. It sets made.Decide, to be called with the verdict, and returns end, to be called with the outcome.
func (l *List) Begin(made *Attempt) (end func(outcome string, size int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	if len(l.records) == MaxRecords {
		made.Decide = func(Verdict) {}
		return func(_ string, size int64) { l.Add(size) }
	}
	at, start := len(l.records), time.Now()
	l.records = append(l.records, RecordedCall{Tool: made.Tool, Digest: made.Definition, Arguments: made.Arguments, Outcome: Unfinished, Begun: start.UTC()})
	made.Decide = func(v Verdict) {
		l.mu.Lock()
		defer l.mu.Unlock()
		c := &l.records[at]
		c.Decision, c.Rule, c.Reason, c.Labels, c.Approval = string(v.Action), v.Rule, v.Reason, nil, v.Approval
		if v.Action == policy.Allow {
			c.Labels = v.Labels
		}
	}
	return func(outcome string, size int64) {
		l.Add(size)
		l.mu.Lock()
		defer l.mu.Unlock()
		c := &l.records[at]
		c.Outcome, c.Duration, c.Size, c.Replayed = outcome, time.Since(start), size, made.Replayed
	}
}

// Add adds to the size of all results.
func (l *List) Add(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += size
}

// Sums returns the number of calls, and the size of their results in bytes.
func (l *List) Sums() (made int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.bytes
}

// FirstPending returns the tool of the first call that was pending for at least this long when the program ended.
func (l *List) FirstPending(least time.Duration) (waited time.Duration, of tool.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.records {
		took := c.Duration
		switch c.Outcome {
		case Unfinished:
			took = time.Since(c.Begun)
		case string(tool.Canceled):
		default:
			continue
		}
		if took >= least {
			return took, c.Tool
		}
	}
	return 0, tool.ID{}
}

// All returns the recorded calls, and the number of all calls.
func (l *List) All() ([]RecordedCall, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]RecordedCall(nil), l.records...), l.made
}

const maxResultCounted = 16 << 10

// MaxResultsCounted is the maximum size of the samples of a program's results, in bytes.
const MaxResultsCounted = 64 << 10

// Sample keeps the beginning of a result, to count its tokens later.
func (l *List) Sample(r tool.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := min(maxResultCounted, MaxResultsCounted-l.SampledBytes)
	keep := func(text string) {
		if n := min(len(text), room); n > 0 {
			l.samples = append(l.samples, strings.Clone(text[:n]))
			room, l.SampledBytes = room-n, l.SampledBytes+n
		}
	}
	for _, c := range r.Content {
		keep(c.Text)
	}
	if TextBytes(r) == 0 {
		keep(string(r.Structured[:min(len(r.Structured), max(room, 0))]))
	}
}

// Samples returns and releases the samples of results, with the size of all results in bytes.
func (l *List) Samples() (samples []string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	samples, l.samples = l.samples, nil
	return samples, l.bytes
}
