package execution

import (
	"strings"
	"sync"
	"sync/atomic"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tokens"
)

// maxAnswerCounted is the maximum length of an answer that is counted, in bytes.
const maxAnswerCounted = 64 << 10

// TypicalBytes and TypicalTokens give the bytes per token of typical results. Estimates use it before anything is counted.
const (
	TypicalBytes  = 3200
	TypicalTokens = 1000
)

// Meter counts tokens of o200k_base. The vocabulary is loaded on first use. Its zero value is ready.
type Meter struct{ bytes, tokens atomic.Int64 }

// Count counts the tokens of a text, or estimates them without a vocabulary.
func (m *Meter) Count(text string) int {
	if counter, err := tokens.O200k(); err == nil {
		if n, err := counter.Count(text); err == nil {
			m.bytes.Add(int64(len(text)))
			m.tokens.Add(int64(n))
			return n
		}
	}
	return int(m.Estimate(int64(len(text))))
}

// Estimate estimates the number of tokens in a number of bytes, by the ratio counted so far.
func (m *Meter) Estimate(bytes int64) int64 {
	counted, have := m.bytes.Load()+TypicalBytes, m.tokens.Load()+TypicalTokens
	return int64(float64(bytes) * float64(have) / float64(counted))
}

// Cost is the number of tokens of an execution's answer and results. They are counted once, on first use, so that
// counting does not delay the answer. The beginning of each text is counted, and the rest is extrapolated.
type Cost struct {
	meter  *Meter
	answer string
	Size   int64 // of the answer, in bytes
	calls  *toolcall.List

	once           sync.Once
	answered, read int
}

// NewCost returns the cost of an execution by its answer and its calls.
func NewCost(m *Meter, answer string, calls *toolcall.List) *Cost {
	return &Cost{meter: m, answer: strings.Clone(answer[:min(len(answer), maxAnswerCounted)]), Size: int64(len(answer)), calls: calls}
}

// Tokens returns the tokens of the answer, and of the results that the program got. The first call counts them, or estimates them if
// exactly is false.
func (t *Cost) Tokens(exactly bool) (answered, read int) {
	if t == nil {
		return 0, 0
	}
	t.once.Do(func() {
		samples, bytes := t.calls.Samples()
		count := t.meter.Count
		if !exactly {
			count = func(s string) int { return int(t.meter.Estimate(int64(len(s)))) }
		}
		t.answered = proportion(count(t.answer), int64(len(t.answer)), t.Size)
		sum, of := 0, int64(0)
		for _, s := range samples {
			sum, of = sum+count(s), of+int64(len(s))
		}
		t.read = proportion(sum, of, bytes)
		t.answer = ""
	})
	return t.answered, t.read
}

// proportion extrapolates tokens from the counted bytes to all bytes.
func proportion(tokens int, counted, all int64) int {
	if counted == 0 || counted >= all {
		return tokens
	}
	return int(float64(tokens) * float64(all) / float64(counted))
}

// TokensRead returns the number of tokens (o200k_base) of the results that the program got. The excess over the answer stayed
// out of the model's context. The first call counts them.
func (e Result) TokensRead() int {
	_, read := e.Cost.Tokens(true)
	return read
}
