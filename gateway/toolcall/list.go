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
	// Digest is that of the tool's definition at the call, see [tool.Tool.Digest]; "" for what is no upstream's tool.
	Digest string `json:"digest,omitempty"`
	// Arguments is the SHA-256 of the arguments in compact JSON, in hex.
	Arguments string `json:"arguments"`
	// Decision is what became of it by the policy ("allow", "deny", "ask" for a pending one), "" where there is none. Rule and
	// Reason say why, Labels are those of what it brought.
	Decision string   `json:"decision,omitempty"`
	Rule     string   `json:"rule,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	// Approval is the id of the approval that was requested for it, "" for none.
	Approval string `json:"approval,omitempty"`
	// Outcome is "ok", the kind of the error, or "unfinished" where the program had ended before.
	Outcome string `json:"outcome"`
	// Replayed says that it was not made, but answered from the journal of the execution before.
	Replayed bool `json:"replayed,omitempty"`
	// Begun is when it began, the zero time where that was not kept.
	Begun    time.Time     `json:"begun,omitzero"`
	Duration time.Duration `json:"duration"`
	// Size is how many bytes of text the result had, or of structured content where there is no text.
	Size int64 `json:"size,omitempty"`
}

// MaxRecords is how many calls of an execution are kept.
const MaxRecords = 1000

// Unfinished is the outcome of a call that was in flight when its program ended.
const Unfinished = "unfinished"

// List is what a program calls, as it calls it.
type List struct {
	mu      sync.Mutex
	records []RecordedCall
	made    int
	bytes   int64 // of the results of all that have ended
	// samples are the beginnings of results, held their bytes.
	samples []string
	Held    int
}

// Begin notes a call, gives it what is to be called when it is decided what becomes of it, and returns what is to be called when it has
// ended. What made says at its end is noted too.
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

// Sums are how many calls were made, and how many bytes their results had.
func (l *List) Sums() (made int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.bytes
}

// Unanswered returns the tool of the first call that was pending for at least this long when the program ended.
func (l *List) Unanswered(least time.Duration) (waited time.Duration, of tool.ID) {
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

// All returns what was called so far.
func (l *List) All() ([]RecordedCall, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]RecordedCall(nil), l.records...), l.made
}

const maxResultCounted = 16 << 10

// MaxResultsCounted is how much of all results of a program is counted, in bytes.
const MaxResultsCounted = 64 << 10

// Sample keeps the beginning of a result, to be counted.
func (l *List) Sample(r tool.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := min(maxResultCounted, MaxResultsCounted-l.Held)
	keep := func(text string) {
		if n := min(len(text), room); n > 0 {
			l.samples = append(l.samples, strings.Clone(text[:n]))
			room, l.Held = room-n, l.Held+n
		}
	}
	for _, c := range r.Content {
		keep(c.Text)
	}
	if TextBytes(r) == 0 {
		keep(string(r.Structured[:min(len(r.Structured), max(room, 0))]))
	}
}

// Samples are the beginnings of results, which are let go of, and the bytes of all.
func (l *List) Samples() (samples []string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	samples, l.samples = l.samples, nil
	return samples, l.bytes
}
