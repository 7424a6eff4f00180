package history

import (
	"context"
	"fmt"
	"time"

	"sallyport/gateway/execution"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Savings tell what programs kept out of models' contexts, step by step.
type Savings struct {
	// Since is where the first step begins, StepSeconds how long each is.
	Since       time.Time `json:"since"`
	StepSeconds int64     `json:"step_seconds"`
	// Steps are in order of time, up to now; one in which nothing ran is there too.
	Steps []SavingsStep `json:"steps"`
	// Total is all of them together.
	Total SavingsStep `json:"total"`
	// Partly says that some executions made more calls than their records have: what was read is at least this.
	Partly bool `json:"partly,omitempty"`
}

// SavingsStep is what ran in one step of time.
type SavingsStep struct {
	Begin time.Time `json:"begin"`
	// Executions began in it. Failed are those of them that did not end well.
	Executions int `json:"executions"`
	Failed     int `json:"failed"`
	// Calls is how many calls of tools they made.
	Calls int `json:"calls"`
	// Answered is how many tokens their answers had, which models read; Read that of the results that they read themselves.
	Answered int64 `json:"answered_tokens"`
	Read     int64 `json:"read_tokens"`
}

// Saved is how many tokens stayed out of models' contexts: of results that programs read, beyond what they answered.
func (s SavingsStep) Saved() int64 { return max(s.Read-s.Answered, 0) }

// maxSavings is how many steps anybody needs.
const maxSavings = 1000

// Savings adds up the records of the caller, or of all for an operator, from a time on in steps. Errors are *tool.Error.
func (h *History) Savings(ctx context.Context, since time.Time, step time.Duration) (Savings, error) {
	now := time.Now()
	if step <= 0 || since.After(now) || now.Sub(since)/step >= maxSavings {
		return Savings{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("savings are told of at most %d steps up to now", maxSavings), Hint: "use longer steps"}
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

// ReadTokens is how many tokens the results had that a program read.
func (r Record) ReadTokens() (n int64) {
	if r.TokensRead > 0 {
		return int64(r.TokensRead)
	}
	for _, c := range r.Calls { // of before they were counted
		n += c.Size * execution.UsualTokens / execution.UsualBytes
	}
	return n
}
