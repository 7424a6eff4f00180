package local

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/gateway/execution"
	"sallyport/internal/policy"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

const (
	// maxCalls is how many tools are called, callTime how long one call, or a program with one, may take.
	maxCalls = 20
	callTime = 10 * time.Second
	// maxRead is the largest result that is counted, in bytes: far more than fits a model.
	maxRead = 4 << 20
)

// Calls are tools that were called for real, each once directly and once from a program; [Bench.Latency] may call the quickest
// again.
type Calls struct {
	// Made are in the order in which they were called.
	Made []Call `json:"made"`
	// Why the others were not: NotReadOnly do not say that they only read, NeedArguments cannot be called without any,
	// Refused are those that the policy refuses or asks about, Beyond is one for each beyond the first 20.
	NotReadOnly   int `json:"not_read_only"`
	NeedArguments int `json:"need_arguments"`
	Refused       int `json:"refused_by_policy"`
	Beyond        int `json:"beyond_limit"`
	// Direct and Program are the sums over calls that count.
	Counted int   `json:"counted"`
	Direct  Count `json:"direct"`
	Program Count `json:"program"`
	// Problem says why no program was run, "" if they were.
	Problem string `json:"problem,omitempty"`
}

// Call is one tool.
type Call struct {
	Tool string `json:"tool"`
	// Direct is the call with its result as clients show it, Program the code with what it prints: how
	// long the result is, and how many items it has.
	Direct  Count `json:"direct"`
	Program Count `json:"program"`
	// Bytes is the size of the result, and Printed what the program printed.
	Bytes   int64  `json:"bytes"`
	Printed string `json:"printed,omitempty"`
	// Micros is how long the direct call took.
	Micros int64 `json:"micros"`
	// Problem says why it is in no sum, "" if it is.
	Problem string `json:"problem,omitempty"`
}

// Calls calls tools that only read. With programs it runs one for each of them as well; problem says why not.
// said is called with each tool before it is called.
func (b *Bench) Calls(ctx context.Context, problem string, said func(tool string)) (*Calls, error) {
	c := &Calls{Made: []Call{}, Problem: problem}
	for i, t := range b.candidates(ctx, c) {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		said(t.ID.String())
		call, err := b.both(newSession(ctx, i), t, problem == "")
		if err != nil {
			return c, err
		}
		if call.Problem == "" && problem == "" {
			c.Counted++
			c.Direct, c.Program = c.Direct.Plus(call.Direct), c.Program.Plus(call.Program)
		}
		c.Made = append(c.Made, call)
	}
	return c, nil
}

// newSession returns a session for each call: what one has read must not affect the policy decision on the next.
func newSession(ctx context.Context, i int) context.Context {
	return tool.WithSession(ctx, fmt.Sprintf("bench-%d", i))
}

// Callable is the first tool that [Bench.Calls] would call and count, nil if there is none: who only takes times needs no more.
func (b *Bench) Callable(ctx context.Context, said func(tool string)) (*tool.ID, error) {
	for i, t := range b.candidates(ctx, &Calls{}) {
		said(t.ID.String())
		c := Call{Tool: t.ID.String()}
		if err := b.direct(newSession(ctx, i), t, &c); err != nil {
			return nil, err
		}
		if c.Problem == "" {
			return &t.ID, nil
		}
	}
	return nil, ctx.Err()
}

// Quickest is the tool that counts and answered soonest, nil if there is none.
func (c *Calls) Quickest() *tool.ID {
	var best *Call
	for i := range c.Made {
		if one := &c.Made[i]; one.Problem == "" && (best == nil || one.Micros < best.Micros) {
			best = one
		}
	}
	if best == nil {
		return nil
	}
	id, err := tool.ParseID(best.Tool)
	if err != nil {
		return nil
	}
	return &id
}

// candidates are the tools that may be called, upstream by upstream in turn.
func (b *Bench) candidates(ctx context.Context, c *Calls) []tool.Tool {
	byUpstream := map[string]int{}
	type candidate struct {
		turn int
		tool.Tool
	}
	var list []candidate
	for _, t := range b.tools() {
		switch {
		case !readsOnly(t):
			c.NotReadOnly++
		case needsArguments(t.Input):
			c.NeedArguments++
		case !b.allowed(ctx, t):
			c.Refused++
		default:
			list = append(list, candidate{byUpstream[t.ID.Upstream], t})
			byUpstream[t.ID.Upstream]++
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(x.turn, y.turn) })
	c.Beyond = max(0, len(list)-maxCalls)
	var tools []tool.Tool
	for _, one := range list[:len(list)-c.Beyond] {
		tools = append(tools, one.Tool)
	}
	return tools
}

// readsOnly believes an upstream that says so, as the policy does, unless it contradicts itself.
func readsOnly(t tool.Tool) bool {
	call := policy.Call{Tool: t.ID, Annotations: t.Annotations}
	return call.ReadsOnly() && (t.Annotations.Destructive == nil || !*t.Annotations.Destructive)
}

// needsArguments reports whether a schema has required members, or cannot be read.
func needsArguments(schema json.RawMessage) bool {
	var s struct {
		Required []string          `json:"required"`
		AnyOf    []json.RawMessage `json:"anyOf"`
		OneOf    []json.RawMessage `json:"oneOf"`
		AllOf    []json.RawMessage `json:"allOf"`
		Ref      string            `json:"$ref"`
	}
	return json.Unmarshal(schema, &s) != nil || len(s.Required)+len(s.AnyOf)+len(s.OneOf)+len(s.AllOf)+len(s.Ref) > 0
}

// allowed reports whether the rules in force let a call through unasked.
func (b *Bench) allowed(ctx context.Context, t tool.Tool) bool {
	d, err := b.gateway.Guard.ExplainPolicy(ctx, tool.Call{Tool: t.ID, Args: json.RawMessage("{}")})
	return err == nil && d.Action == policy.Allow
}

// both calls a tool, and has a program call it.
func (b *Bench) both(ctx context.Context, t tool.Tool, program bool) (Call, error) {
	c := Call{Tool: t.ID.String()}
	if err := b.direct(ctx, t, &c); err != nil || c.Problem != "" || !program {
		return c, err
	}
	return c, b.program(ctx, t, &c)
}

// direct calls a tool through the gateway, and counts call and result as a model would read them.
func (b *Bench) direct(ctx context.Context, t tool.Tool, c *Call) error {
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	args := json.RawMessage("{}")
	begin := time.Now()
	result, err := b.gateway.Call(within, tool.Call{Tool: t.ID, Args: args})
	c.Micros = time.Since(begin).Microseconds()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := shownResult(result)
	c.Bytes = sizeOf(result)
	switch {
	case err != nil:
		c.Problem = sanitize.Line(tool.AsError(err).Message, 200)
	case result.IsError:
		c.Problem = "the tool failed: " + sanitize.Line(text, 200)
	case nonText(result) != "":
		c.Problem = "it has " + nonText(result) + ", whose tokens depend on the model"
	case len(text) > maxRead:
		c.Problem = fmt.Sprintf("its result is too large to be counted: %d bytes", len(text))
	}
	if c.Problem != "" {
		return nil
	}
	turn := tokencount.Turn{Calls: []tokencount.Call{{Tool: definition(t).Name, Args: args}}, Results: []tokencount.Result{{Text: text}}}
	if c.Direct, err = b.counts(&tokencount.Transcript{Turns: []tokencount.Turn{turn}}, contextTokens); err == nil && c.Direct.O200k > Window {
		c.Problem = fmt.Sprintf("its result fits no model's context: %d tokens", c.Direct.O200k)
	}
	return err
}

// nonText names the content of a result that is not text, and so cannot be counted; "" for none.
func nonText(r tool.Result) string {
	for _, c := range r.Content {
		switch {
		case c.Type == "image", c.Type == "audio":
			return map[string]string{"image": "an image", "audio": "a sound"}[c.Type]
		case len(c.Data) > 0:
			return "binary data"
		}
	}
	return ""
}

// shownResult is a result as clients show it: its texts, a short line for what is none, structured content only where there is no text.
func shownResult(r tool.Result) string {
	var parts []string
	for _, c := range r.Content {
		if c.Text != "" {
			parts = append(parts, c.Text)
		} else {
			parts = append(parts, execution.Label(c))
		}
	}
	if r.Text() == "" && len(r.Structured) > 0 {
		parts = append(parts, tokencount.Plain(r.Structured))
	}
	return strings.Join(parts, "\n")
}

// sizeOf is the size of a result as records of executions have it.
func sizeOf(r tool.Result) (n int64) {
	for _, c := range r.Content {
		n += int64(len(c.Text))
	}
	return cmp.Or(n, int64(len(r.Structured)))
}

// countingCode is a program that calls a tool and says how much it got.
func countingCode(id tool.ID) string {
	name, as := id.Name, ""
	if slices.Contains([]string{"len", "str", "hasattr"}, name) { // which the program needs itself
		name, as = "call", " as call"
	}
	return fmt.Sprintf("from servers.%s import %s%s\nr = %s()\n[len(str(r)), len(r) if hasattr(r, \"__len__\") else 1]", id.Upstream, id.Name, as, name)
}

// program has a program call the tool, which prints how much it got.
func (b *Bench) program(ctx context.Context, t tool.Tool, c *Call) error {
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	code := countingCode(t.ID)
	e, err := b.gateway.Executor.Execute(within, execution.Program{Code: code, Timeout: callTime})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.Problem = sanitize.Line(tool.AsError(err).Message, 200)
		return nil
	}
	args, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		return err
	}
	turn := tokencount.Turn{Calls: []tokencount.Call{{Tool: suite.ExecuteCode, Args: args}}, Results: []tokencount.Result{{Text: e.Text()}}}
	if c.Program, err = b.counts(&tokencount.Transcript{Turns: []tokencount.Turn{turn}}, contextTokens); err != nil {
		return err
	}
	c.Printed, c.Problem = sanitize.Line(e.Text(), 200), b.mismatch(ctx, e, c)
	return nil
}

// mismatch returns why a program's call cannot be compared with the direct one, "" if it can.
func (b *Bench) mismatch(ctx context.Context, e execution.Result, c *Call) string {
	if e.Status != sandbox.OK {
		return "the program failed: " + sanitize.Line(e.Text(), 200)
	}
	r, err := b.gateway.History.Record(ctx, e.ID)
	if err != nil || len(r.Calls) != 1 {
		return "it is not known what the program read"
	}
	if r.Calls[0].Size != c.Bytes {
		return fmt.Sprintf("its result changed between the calls: %d bytes, then %d", c.Bytes, r.Calls[0].Size)
	}
	return ""
}
