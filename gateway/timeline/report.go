package timeline

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Range is how far a report goes back.
type Range string

// The ranges.
const (
	Hour  Range = "1h"
	Day   Range = "24h"
	Week  Range = "7d"
	Month Range = "30d"
)

// Ranges returns all ranges, the shortest first.
func Ranges() []Range { return []Range{Hour, Day, Week, Month} }

// steps are the length and the number of the steps of each range.
var steps = map[Range]struct {
	length time.Duration
	number int
}{Hour: {time.Minute, 60}, Day: {15 * time.Minute, 96}, Week: {2 * time.Hour, 84}, Month: {8 * time.Hour, 90}}

// Graphs are what all programs and calls of a gateway did over time. Several gateways on one store are added up.
type Graphs struct {
	Range Range `json:"range"`
	// Since is the begin of the first step, StepMS the length of each.
	Since  time.Time `json:"since"`
	StepMS int64     `json:"step_ms"`
	// Steps are in order of time, up to now, including empty ones; Total is the whole range.
	Steps []Step `json:"steps"`
	Total Step   `json:"total"`
	// Tools are the most called tools by calls, Clients the clients with the most programs.
	Tools   []Share `json:"tools"`
	Clients []Share `json:"clients"`
}

// Step is what happened in one time step.
type Step struct {
	Begin time.Time `json:"begin"`
	// Programs is the number of programs that ended, Failed that of those that failed, Failures the same by status.
	Programs int            `json:"programs"`
	Failed   int            `json:"failed"`
	Failures map[string]int `json:"failures"`
	// Calls is the number of tool calls, FailedCalls that of those that failed.
	Calls       int `json:"calls"`
	FailedCalls int `json:"failed_calls"`
	// P50MS and P99MS are percentiles of the durations of programs, right to 10 %; 0 without programs.
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	// Queue is the highest number of programs of one gateway that waited for their turn.
	Queue int `json:"queue"`
	// Money is the price of the models that Sallyport called for tasks, in the currency of the settings.
	Money float64 `json:"money,omitempty"`
	// ResultBytes is the mean size of the results of calls, in the graphs of one tool.
	ResultBytes int64 `json:"result_bytes,omitempty"`
}

// Graphs returns what all programs did over a range, for an operator. Errors are *tool.Error.
func (t *Timeline) Graphs(ctx context.Context, r Range) (Graphs, error) {
	return t.graphs(ctx, r, func(c Counts) Counts { return c })
}

// ToolGraphs returns the calls of one tool over a range, for an operator: their numbers, the percentiles of their durations, without
// the time that they waited for an approval, and the size of their results. Errors are *tool.Error.
func (t *Timeline) ToolGraphs(ctx context.Context, id tool.ID, r Range) (Graphs, error) {
	name := sanitize.Line(id.String(), maxName)
	return t.graphs(ctx, r, func(c Counts) Counts { return c.ofTool(name) })
}

func (t *Timeline) graphs(ctx context.Context, r Range, of func(Counts) Counts) (Graphs, error) {
	if tool.Operator(ctx) == "" {
		return Graphs{}, &tool.Error{Kind: tool.Denied, Message: "only an operator may see what all principals do"}
	}
	step, ok := steps[r]
	if !ok {
		return Graphs{}, &tool.Error{Kind: tool.Invalid, Message: "a range is 1h, 24h, 7d or 30d"}
	}
	since := time.Now().UTC().Truncate(step.length).Add(-time.Duration(step.number-1) * step.length)
	counts, err := t.read(ctx, since, step.length, step.number)
	if err != nil {
		return Graphs{}, toolcall.Unreadable(ctx, t.opts.Logger, err)
	}
	for i, c := range counts {
		counts[i] = of(c)
	}
	return report(r, since, step.length, counts), nil
}

// read returns the counts of each step, of all gateways.
func (t *Timeline) read(ctx context.Context, since time.Time, length time.Duration, number int) ([]Counts, error) {
	if err := t.save(ctx); err != nil {
		return nil, err
	}
	from := t.series[0]
	if length >= time.Hour {
		from = t.series[1]
	}
	counts := make([]Counts, number)
	for entry, err := range from.bucket.List(ctx, nil) {
		if err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseInt(entry.Key[0], 10, 64)
		begin := time.Unix(seconds, 0)
		i := int(begin.Sub(since) / length)
		if err != nil || begin.Before(since) || i >= number {
			continue
		}
		var one Counts
		if json.Unmarshal(entry.Value, &one) == nil { // a damaged interval is left out
			counts[i].merge(one)
		}
	}
	return counts, nil
}

func report(r Range, since time.Time, length time.Duration, counts []Counts) Graphs {
	out := Graphs{Range: r, Since: since, StepMS: length.Milliseconds()}
	var all Counts
	for i, c := range counts {
		out.Steps = append(out.Steps, stepOf(since.Add(time.Duration(i)*length), c))
		all.merge(c)
	}
	out.Total, out.Tools, out.Clients = stepOf(since, all), top(all.Tools), top(all.Clients)
	return out
}

func stepOf(begin time.Time, c Counts) Step {
	s := Step{Begin: begin, Calls: c.Calls, FailedCalls: c.FailedCalls, Queue: c.Queue, P50MS: percentile(c.Durations, 50), P99MS: percentile(c.Durations, 99)}
	s.Failed, s.Failures = c.failures()
	s.ResultBytes, s.Money = c.meanResult(), float64(c.Money)/millionths
	for _, n := range c.Ended {
		s.Programs += n
	}
	return s
}

// FailureKinds returns the kinds of failures of a step, the most frequent first.
func (s Step) FailureKinds() []Share {
	list := []Share{}
	for _, name := range namesOf(s.Failures) {
		list = append(list, Share{name, s.Failures[name]})
	}
	return list
}
