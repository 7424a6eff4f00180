package tokencount

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sallyport/bench/ordered"
)

// Counter counts the tokens of a text.
type Counter interface {
	Count(text string) (int, error)
}

// Step is what one turn costs.
type Step struct {
	// Read is the whole context that the turn begins with.
	Read int `json:"read"`
	// Cached is the part of it that the turn before had read as well, and so stands in an endpoint's cache.
	// What the turn before wrote is new to the cache, as it is to those of Anthropic and OpenAI.
	Cached  int `json:"cached"`
	Written int `json:"written"`
}

// Counts are the tokens of one task.
type Counts struct {
	// Definitions, Instructions and Prompt are what the first turn reads.
	Definitions  int `json:"definitions"`
	Instructions int `json:"instructions"`
	Prompt       int `json:"prompt"`
	// Results is what results come to, and Shown the definitions that came with them, each counted once.
	Results int `json:"results"`
	Shown   int `json:"shown"`
	// Turns has what each turn costs; the sums over them follow.
	Turns   []Step `json:"turns"`
	Read    int    `json:"read"`
	Cached  int    `json:"cached"`
	Written int    `json:"written"`
	// Peak is the largest context with the answer to it, which has to fit a model's window.
	Peak int `json:"peak"`
	// Wasted is what failed calls and their results are, counted once. That their turns
	// read the context again is in Read.
	Wasted int `json:"wasted"`
	Failed int `json:"failed"`
}

// Total is everything that was read or written, as if an endpoint had no cache.
func (c Counts) Total() int { return c.Read + c.Written }

// Rates are what a token costs, next to one that is read and in no cache.
type Rates struct {
	Cached float64 `json:"cached"`
	// Stored is for what is read for the first time: above 1 where endpoints charge for putting it into their cache.
	Stored float64 `json:"stored"`
	Output float64 `json:"output"`
	// Minimum is how many tokens the beginning of a context has to have to be cached at all.
	Minimum int `json:"minimum,omitempty"`
	// Warm says that definitions and instructions are in the cache at the first turn, of a conversation before.
	Warm bool `json:"warm,omitempty"`
}

// CacheMinimum is the least that endpoints cache: 1,024 tokens at OpenAI, and 1,024 to 4,096 at Anthropic, by model
// (platform.openai.com/docs/guides/prompt-caching, docs.anthropic.com/en/docs/build-with-claude/prompt-caching).
const CacheMinimum = 1024

// WeightedCost returns the cost of the task at these rates, in uncached input tokens.
func (c Counts) WeightedCost(r Rates) float64 {
	cached := 0
	for i, step := range c.Turns {
		from := step.Cached
		if i == 0 && r.Warm {
			from = c.Definitions + c.Instructions
		}
		if from >= r.Minimum {
			cached += from
		}
	}
	return r.Cached*float64(cached) + r.Stored*float64(c.Read-cached) + r.Output*float64(c.Written)
}

// Count counts a transcript. Every segment (a definition, a prompt, a text, a tool's name, its arguments, a result) is
// counted alone, which is within a token or so for each of counting them in one piece; what endpoints put around messages and
// tools is left out, in all modes. A counter that is a [Memo] counts no text twice.
func (t *Transcript) Count(c Counter) (Counts, error) {
	memo, ok := c.(*Memo)
	if !ok {
		memo = NewMemo(c)
	}
	s := sums{memo: memo}
	counts := s.count(t)
	if s.err != nil {
		return Counts{}, fmt.Errorf("count %s in mode %s: %w", t.Task, t.Mode, s.err)
	}
	return counts, nil
}

// sums adds tokens up, and remembers the first error.
type sums struct {
	memo *Memo
	err  error
}

func (s *sums) count(t *Transcript) Counts {
	c := Counts{Definitions: s.definitions(t.Definitions), Prompt: s.text(t.Prompt)}
	for _, text := range t.Instructions {
		c.Instructions += s.text(text)
	}
	context, before := c.Definitions+c.Instructions+c.Prompt, 0
	for _, turn := range t.Turns {
		step := Step{Read: context, Cached: before, Written: s.writtenTokens(turn)}
		before = step.Read
		c.add(step)
		results, shown := s.results(turn, &c)
		c.Results, c.Shown = c.Results+results, c.Shown+shown
		context += step.Written + results + shown
	}
	return c
}

func (c *Counts) add(step Step) {
	c.Turns = append(c.Turns, step)
	c.Read += step.Read
	c.Cached += step.Cached
	c.Written += step.Written
	c.Peak = max(c.Peak, step.Read+step.Written)
}

func (s *sums) writtenTokens(turn Turn) int {
	n := s.text(turn.Text)
	for _, call := range turn.Calls {
		n += s.call(call)
	}
	return n
}

// call is a tool's name and its arguments as JSON: code is counted with the escapes that it has there.
func (s *sums) call(call Call) int { return s.text(call.Tool) + s.text(Plain(call.Args)) }

// results returns what the model reads of a turn, and notes what has failed.
func (s *sums) results(turn Turn, c *Counts) (results, shown int) {
	for i, r := range turn.Results {
		n := s.text(r.Text)
		results, shown = results+n, shown+s.definitions(r.Shows)
		if r.Error && i < len(turn.Calls) {
			c.Wasted += n + s.call(turn.Calls[i])
			c.Failed++
		}
	}
	return results, shown
}

func (s *sums) text(text string) int {
	n, err := s.memo.Count(text)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n
}

func (s *sums) definitions(defs []Definition) (sum int) {
	for _, d := range defs {
		n, err := s.memo.Definition(d)
		if err != nil && s.err == nil {
			s.err = err
		}
		sum += n
	}
	return sum
}

// Memo remembers what texts come to. It is for one goroutine.
type Memo struct {
	counter Counter
	texts   map[string]int
	tools   map[string]int
}

// NewMemo returns a memo that has a counter count what it does not know.
func NewMemo(c Counter) *Memo {
	return &Memo{counter: c, texts: map[string]int{}, tools: map[string]int{}}
}

// Count is the counter's.
func (m *Memo) Count(text string) (int, error) {
	return remember(m.texts, text, func() (int, error) { return m.counter.Count(text) })
}

// Definition counts a definition as it stands in a context.
func (m *Memo) Definition(d Definition) (int, error) {
	key := d.Name + "\x00" + d.Description + "\x00" + string(d.InputSchema)
	return remember(m.tools, key, func() (int, error) { return m.counter.Count(d.Text()) })
}

func remember(known map[string]int, key string, count func() (int, error)) (int, error) {
	if n, ok := known[key]; ok {
		return n, nil
	}
	n, err := count()
	if err == nil {
		known[key] = n
	}
	return n, err
}

// Text is a definition as it stands in a context: JSON without white space, and without the $schema at the top of its
// schema, which tells a model nothing and which clients leave out.
func (d Definition) Text() string {
	if len(d.InputSchema) == 0 {
		d.InputSchema = json.RawMessage("{}")
	}
	if schema, ok := ordered.Read(d.InputSchema); ok {
		d.InputSchema = schema.Without("$schema").Encode()
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return d.Name + d.Description + string(d.InputSchema) // a schema that is no JSON is still read
	}
	return unescapeHTML(bytes.TrimSpace(b.Bytes()))
}

// Plain is JSON as models and their clients write it: without white space, and without
// the escapes of <, > and & that Go's encoder makes.
func Plain(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return unescapeHTML(b.Bytes())
}

// unescapeHTML undoes \u003c, \u003e and \u0026, unless the backslash is itself escaped.
func unescapeHTML(data []byte) string {
	var b bytes.Buffer
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			b.WriteByte(data[i])
			continue
		}
		if c, ok := htmlEscape(data[i:]); ok {
			b.WriteByte(c)
			i += 5
			continue
		}
		b.Write(data[i : i+2])
		i++
	}
	return b.String()
}

func htmlEscape(data []byte) (byte, bool) {
	for _, c := range []byte("<>&") {
		if len(data) >= 6 && string(data[:6]) == fmt.Sprintf(`\u%04x`, c) {
			return c, true
		}
	}
	return 0, false
}
