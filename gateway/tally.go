package gateway

import (
	"strings"
	"sync"
	"sync/atomic"

	"sallyport/gateway/toolcall"
	"sallyport/internal/tokens"
)

const (
	// maxAnswerCounted is how much of an answer is counted, in bytes, maxResultCounted how much of a call's result, and
	// maxResultsCounted of all results of a program.
	maxAnswerCounted = 64 << 10
	// usualBytes and usualTokens are of texts that tools give, for when nothing was counted yet.
	usualBytes, usualTokens = 3200, 1000
)

// tokenMeter counts tokens of o200k_base. The vocabulary is loaded by whoever counts first. Its zero value is ready.
type tokenMeter struct{ bytes, tokens atomic.Int64 }

// count counts a text, or estimates it where there is no vocabulary.
func (m *tokenMeter) count(text string) int {
	if counter, err := tokens.O200k(); err == nil {
		if n, err := counter.Count(text); err == nil {
			m.bytes.Add(int64(len(text)))
			m.tokens.Add(int64(n))
			return n
		}
	}
	return int(m.estimate(int64(len(text))))
}

// estimate is how many tokens so many bytes are, by what was counted so far.
func (m *tokenMeter) estimate(bytes int64) int64 {
	counted, have := m.bytes.Load()+usualBytes, m.tokens.Load()+usualTokens
	return int64(float64(bytes) * float64(have) / float64(counted))
}

// tally is what an execution cost and what it saved, in tokens. They are counted once, when somebody first wants to know: that is
// not on the way of an answer. The beginning of each text is counted, and the rest in proportion.
type tally struct {
	meter  *tokenMeter
	answer string
	size   int64 // of the answer, in bytes
	calls  *toolcall.List

	once           sync.Once
	answered, read int
}

func newTally(m *tokenMeter, answer string, calls *toolcall.List) *tally {
	return &tally{meter: m, answer: strings.Clone(answer[:min(len(answer), maxAnswerCounted)]), size: int64(len(answer)), calls: calls}
}

// sums are the tokens of the answer, and of the results that the program got. Where nothing was counted yet they are counted now, or,
// not exactly, estimated.
func (t *tally) sums(exactly bool) (answered, read int) {
	if t == nil {
		return 0, 0
	}
	t.once.Do(func() {
		samples, bytes := t.calls.Samples()
		count := t.meter.count
		if !exactly {
			count = func(s string) int { return int(t.meter.estimate(int64(len(s)))) }
		}
		t.answered = proportion(count(t.answer), int64(len(t.answer)), t.size)
		sum, of := 0, int64(0)
		for _, s := range samples {
			sum, of = sum+count(s), of+int64(len(s))
		}
		t.read = proportion(sum, of, bytes)
		t.answer = ""
	})
	return t.answered, t.read
}

// proportion is how many tokens all bytes are, of which some were counted.
func proportion(tokens int, counted, all int64) int {
	if counted == 0 || counted >= all {
		return tokens
	}
	return int(float64(tokens) * float64(all) / float64(counted))
}

// TokensRead is how many tokens (o200k_base) the results had that the program got; what is more than its answer costs stayed
// out of the model's context. The first one to ask waits while they are counted.
func (e Execution) TokensRead() int {
	_, read := e.tally.sums(true)
	return read
}
