package history

import (
	"context"
	"fmt"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Savings are the tokens that programs kept out of models' contexts, by time step.
type Savings struct {
	// Since is the begin of the first step, StepSeconds the length of each.
	Since       time.Time `json:"since"`
	StepSeconds int64     `json:"step_seconds"`
	// Steps are in order of time, up to now, including empty ones.
	Steps []SavingsStep `json:"steps"`
	// Total is the sum of all steps.
	Total SavingsStep `json:"total"`
	// Partly says that some executions made more calls than their records have: the read tokens are a lower bound.
	Partly bool `json:"partly,omitempty"`
}

// SavingsStep sums the executions of one time step.
type SavingsStep struct {
	Begin time.Time `json:"begin"`
	// Executions is the number that began in it, Failed the number of those that failed.
	Executions int `json:"executions"`
	Failed     int `json:"failed"`
	// Calls is the number of their tool calls.
	Calls int `json:"calls"`
	// Answered is the number of tokens of their answers, which models read; Read that of the results that the programs read.
	Answered int64 `json:"answered_tokens"`
	Read     int64 `json:"read_tokens"`
}

// SavedTokens returns the number of tokens that stayed out of models' contexts: those of results less those of answers.
func (s SavingsStep) SavedTokens() int64 { return max(s.Read-s.Answered, 0) }

// maxSavings is the maximum number of steps.
const maxSavings = 1000

// Savings sums the records of the caller, or of all principals for an operator, in steps from since to now. Errors are *tool.Error.
func (h *History) Savings(ctx context.Context, since time.Time, step time.Duration) (Savings, error) {
	now := time.Now()
	if step <= 0 || since.After(now) || now.Sub(since)/step >= maxSavings {
		return Savings{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("savings cover at most %d steps up to now", maxSavings), Hint: "use longer steps"}
	}
	s := Savings{Since: since.UTC(), StepSeconds: int64(step / time.Second)}
	for begin := since; !begin.After(now); begin = begin.Add(step) {
		s.Steps = append(s.Steps, SavingsStep{Begin: begin.UTC()})
	}
	s.Total.Begin = s.Since
	all, err := h.briefsOf(ctx)
	if err != nil {
		return Savings{}, err
	}
	for _, b := range all {
		i := int(b.Started.Sub(since) / step)
		if b.Started.Before(since) || i >= len(s.Steps) {
			continue
		}
		s.Steps[i].add(b)
		s.Total.add(b)
		s.Partly = s.Partly || b.partly
	}
	return s, nil
}

func (s *SavingsStep) add(b Brief) {
	s.Executions++
	if b.Status != sandbox.OK && b.Status != execution.Held {
		s.Failed++
	}
	s.Calls += b.Made
	s.Answered += int64(b.Tokens)
	s.Read += b.read
}

// ReadTokens returns the number of tokens of the results that a program read.
func (r Record) ReadTokens() (n int64) {
	if r.TokensRead > 0 {
		return int64(r.TokensRead)
	}
	for _, c := range r.Calls { // old records have no count
		n += c.Size * execution.TypicalTokens / execution.TypicalBytes
	}
	return n
}
