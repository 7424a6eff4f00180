package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/timeline"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Graphs is the part of the first page about time, for operators.
type Graphs struct {
	Ranges []TimeRange
	Report timeline.Graphs
	// Programs has a bar a step, Latency two lines, Queue a bar a step.
	Programs, Latency, Queue Graph
	// Money has a bar a step; nil if none was spent.
	Money *Graph
	// Kinds are the failures of the range by kind, the most frequent first.
	Kinds []timeline.Share
	// Rows are the steps in which something happened, as text, the newest first.
	Rows []GraphRow
}

// TimeRange is a choice of how far back.
type TimeRange struct {
	Text, Path string
	Here       bool
}

// Graph is a plot that may have lines of durations.
type Graph struct {
	Plot
	// Fast and Slow are the lines of p50 and p99.
	Fast, Slow []Segment
}

// Segment is a piece of a line; a point if both ends are the same.
type Segment struct{ X1, Y1, X2, Y2 float64 }

// GraphRow is one step as text.
type GraphRow struct {
	Begin, Failures string
	Step            timeline.Step
}

// rangeWords are what the ranges are called.
var rangeWords = map[timeline.Range]string{timeline.Hour: "1 hour", timeline.Day: "24 hours", timeline.Week: "7 days", timeline.Month: "30 days"}

// ToolUse is the part of the page of a tool about time, for operators.
type ToolUse struct {
	Ranges []TimeRange
	Total  timeline.Step
	// Calls has a bar a step, Latency two lines.
	Calls, Latency Graph
}

// graphPages are the parts of pages about time.
type graphPages struct{ *Dashboard }

// toolUse returns nil for a caller who is no operator.
func (d graphPages) toolUse(r *request, id tool.ID) (*ToolUse, error) {
	if !r.isOperator() {
		return nil, nil //nolint:nilnil // the page has no graphs then
	}
	chosen := r.timeRange()
	report, err := d.service.ToolGraphs(r.Context(), id, chosen)
	if err != nil {
		return nil, err
	}
	return &ToolUse{Ranges: r.timeRanges(chosen), Total: report.Total, Calls: callGraph(report), Latency: latencyGraph(report, "calls")}, nil
}

func callGraph(r timeline.Graphs) Graph {
	return barGraph(r, fmt.Sprintf("In %s, %s, of which %s failed.", rangeWords[r.Range], plural(int64(r.Total.Calls), "call", "calls"), groupDigits(int64(r.Total.FailedCalls))), compact,
		func(s timeline.Step) (low, high int, text string) {
			return s.FailedCalls, s.Calls - s.FailedCalls, fmt.Sprintf("%s; failed: %s", plural(int64(s.Calls), "call", "calls"), groupDigits(int64(s.FailedCalls)))
		})
}

// timeRange returns the range that the query chooses.
func (r *request) timeRange() timeline.Range {
	chosen := timeline.Range(r.URL.Query().Get("range"))
	if !slices.Contains(timeline.Ranges(), chosen) {
		return timeline.Day
	}
	return chosen
}

// timeRanges returns the ranges to choose from.
func (r *request) timeRanges(chosen timeline.Range) (all []TimeRange) {
	for _, one := range timeline.Ranges() {
		all = append(all, TimeRange{rangeWords[one], r.with("range", string(one)), one == chosen})
	}
	return all
}

// graphs returns nil for a caller who is no operator, and where only another part of the page is updated.
func (d graphPages) graphs(r *request) (*Graphs, error) {
	if !r.isOperator() || r.URL.Query().Get("live") != "" {
		return nil, nil //nolint:nilnil // the page has no graphs then
	}
	chosen := r.timeRange()
	report, err := d.service.Graphs(r.Context(), chosen)
	if err != nil {
		return nil, err
	}
	g := &Graphs{Report: report, Kinds: report.Total.FailureKinds(), Programs: programGraph(report), Latency: latencyGraph(report, "programs"), Queue: queueGraph(report), Ranges: r.timeRanges(chosen)}
	if report.Total.Money > 0 {
		money := moneyGraph(report)
		g.Money = &money
	}
	for _, step := range slices.Backward(report.Steps) {
		if step.Money > 0 || step.Programs > 0 || step.Calls > 0 || step.Queue > 0 {
			g.Rows = append(g.Rows, GraphRow{step.Begin.Format("2 Jan 15:04"), kindsText(step), step})
		}
	}
	return g, nil
}

// kindsText lists the failures of a step by kind.
func kindsText(s timeline.Step) string {
	var parts []string
	for _, kind := range s.FailureKinds() {
		parts = append(parts, fmt.Sprintf("%s %s", groupDigits(int64(kind.Count)), cmp.Or(sanitize.Line(kind.Name, 60), "other")))
	}
	return strings.Join(parts, ", ")
}

func programGraph(r timeline.Graphs) Graph {
	return barGraph(r, fmt.Sprintf("In %s, %s ended, of which %s failed.", rangeWords[r.Range], plural(int64(r.Total.Programs), "program", "programs"), groupDigits(int64(r.Total.Failed))), compact,
		func(s timeline.Step) (low, high int, text string) {
			text = plural(int64(s.Programs), "program", "programs")
			if s.Failed > 0 {
				text += "; failed: " + kindsText(s)
			}
			return s.Failed, s.Programs - s.Failed, text
		})
}

func queueGraph(r timeline.Graphs) Graph {
	return barGraph(r, fmt.Sprintf("In %s, at most %s waited for their turn at a time.", rangeWords[r.Range], plural(int64(r.Total.Queue), "program", "programs")), compact,
		func(s timeline.Step) (low, high int, text string) {
			return 0, s.Queue, fmt.Sprintf("%s in the queue", groupDigits(int64(s.Queue)))
		})
}

// moneyGraph draws money in thousandths, so that small amounts have a height.
func moneyGraph(r timeline.Graphs) Graph {
	words := func(thousandths float64) string { return price(thousandths / 1000) }
	return barGraph(r, fmt.Sprintf("In %s, the models of tasks cost %s.", rangeWords[r.Range], price(r.Total.Money)), words, func(s timeline.Step) (low, high int, text string) {
		return 0, int(math.Ceil(s.Money * 1000)), cmp.Or(price(s.Money), "0")
	})
}

// barGraph lays out a bar for each step: low at the bottom, high on top of that. The scale has values as words has them.
func barGraph(r timeline.Graphs, label string, words func(float64) string, of func(timeline.Step) (low, high int, text string)) Graph {
	most := 0
	for _, s := range r.Steps {
		low, high, _ := of(s)
		most = max(most, low+high)
	}
	top := ceiling(int64(most))
	g := Graph{Plot: Plot{Label: label, Empty: most == 0, Lines: scaleLines(top, words)}}
	for i, s := range r.Steps {
		low, high, text := of(s)
		b := barAt(r, i)
		b.Low = block(plotBottom, int64(low), top)
		b.High = block(b.Low.Y, int64(high), top)
		b.Text = s.Begin.Format("2 Jan 15:04") + ": " + text
		g.Bars = append(g.Bars, b)
	}
	return g
}

// latencyGraph draws p50 and p99 of programs or calls, with a gap where there were none.
func latencyGraph(r timeline.Graphs, of string) Graph {
	most := 0.0
	for _, s := range r.Steps {
		most = max(most, s.P99MS)
	}
	top := ceiling(int64(most) + 1)
	label := fmt.Sprintf("In %s, half of the %s took at most %s, and 99 of 100 at most %s.", rangeWords[r.Range], of, milliseconds(r.Total.P50MS), milliseconds(r.Total.P99MS))
	g := Graph{Plot: Plot{Label: label, Empty: most == 0, Lines: scaleLines(top, milliseconds)}}
	for i, s := range r.Steps {
		b := barAt(r, i)
		if s.P99MS > 0 {
			b.Text = fmt.Sprintf("%s: p50 %s, p99 %s", s.Begin.Format("2 Jan 15:04"), milliseconds(s.P50MS), milliseconds(s.P99MS))
			before := i
			if i > 0 && r.Steps[i-1].P99MS > 0 {
				before = i - 1
			}
			from := barAt(r, before).Middle
			g.Fast = append(g.Fast, Segment{from, height(r.Steps[before].P50MS, top), b.Middle, height(s.P50MS, top)})
			g.Slow = append(g.Slow, Segment{from, height(r.Steps[before].P99MS, top), b.Middle, height(s.P99MS, top)})
		}
		g.Bars = append(g.Bars, b)
	}
	return g
}

// height is where a value is in a plot.
func height(value, top float64) float64 { return plotBottom - (plotBottom-plotTop)*value/top }

func milliseconds(ms float64) string { return duration(time.Duration(ms * float64(time.Millisecond))) }

// graphLeft is kept for the numbers, in percent, graphTimes is how many steps have room for their time.
const graphLeft, graphTimes = 14.0, 4

// barAt is the place of a step, with its time if there is room.
func barAt(r timeline.Graphs, i int) Bar {
	width := (100 - graphLeft) / float64(len(r.Steps))
	b := Bar{X: graphLeft + width*(float64(i)+.1), Width: width * .8, Middle: graphLeft + width*(float64(i)+.5)}
	every := max(len(r.Steps)/graphTimes, 1)
	if i%every == every/2 {
		layout := "15:04"
		if r.StepMS >= time.Hour.Milliseconds() {
			layout = "2 Jan"
		}
		b.Time = r.Steps[i].Begin.Format(layout)
	}
	return b
}
