package workflowcmd

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/timeline"
)

// barWidth is the width of the bars of a timeline, in characters.
const barWidth = 24

// chart formats the timeline of a run as text.
type chart struct{ *timeline.Chart }

func newChart() *chart { return &chart{timeline.New()} }

// text returns the timeline at a time.
func (c *chart) text(now time.Time) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	d := timelineWriter{Chart: c.Chart, out: table, end: now}
	d.total = max(now.Sub(c.Start), time.Millisecond)
	fmt.Fprintln(table, "  START\t\tSTEP\tDOES\tOUTCOME\tTOOK\t")
	d.writeAll(c.Tree(), "")
	_ = table.Flush() // to a builder
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "  %s %s by %s\n", offset(note.At.Sub(c.Start)), note.What, cli.Cell(note.By, 60))
	}
	return trailingSpaces.ReplaceAllString(b.String(), "")
}

// trailingSpaces matches spaces at the ends of lines.
var trailingSpaces = regexp.MustCompile(`(?m) +$`)

// timelineWriter writes the rows of a timeline.
type timelineWriter struct {
	*timeline.Chart
	out   *tabwriter.Writer
	end   time.Time
	total time.Duration
}

// writeAll writes steps with their substeps; of a long loop only some passes.
func (d *timelineWriter) writeAll(marks []*timeline.Mark, indent string) {
	shown, hidden := timeline.Pick(marks)
	for _, m := range shown {
		if m == nil {
			fmt.Fprintf(d.out, "  \t\t%s%s\t\t\t\t\n", indent, passesText(hidden))
			continue
		}
		if only := m.Collapse(); only != nil {
			d.writeRow(only, indent)
			continue
		}
		d.writeRow(m, indent)
		d.writeAll(m.Kids, indent+"  ")
	}
}

// passesText summarizes the passes that are not shown.
func passesText(hidden []*timeline.Mark) string {
	counts := map[string]int{}
	var least, most time.Duration
	for i, m := range hidden {
		took := m.Ended.Sub(m.Began)
		if counts[cmp.Or(m.Outcome, "under way")]++; m.Ended.IsZero() {
			continue
		}
		if i == 0 || took < least {
			least = took
		}
		most = max(most, took)
	}
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprint(counts[outcome], " ", outcome))
	}
	return fmt.Sprintf("... %d more: %s; %s to %s each", len(hidden), strings.Join(parts, ", "), formatDuration(least), formatDuration(most))
}

func (d *timelineWriter) writeRow(m *timeline.Mark, indent string) {
	end, took := m.Ended, ""
	if end.IsZero() {
		end = d.end
	} else {
		took = formatDuration(end.Sub(m.Began))
	}
	outcome := m.Outcome
	if outcome == "" {
		outcome = "under way"
		if n := len(m.Waits); n > 0 && m.Waits[n-1].To.IsZero() {
			outcome = "waits for " + waitsFor(m.Waits[n-1].What)
		}
	}
	start, bar := offset(m.Began.Sub(d.Start)), d.bar(m, end)
	if m.Began.Before(d.Start) && !m.Ended.IsZero() {
		start, bar = "taken over", strings.Repeat(" ", barWidth+2)
	}
	fmt.Fprintf(d.out, "  %s\t%s\t%s%s\t%s\t%s\t%s\t%s\n", start, bar, indent, cli.Cell(m.Name, 60), d.describeStep(m.Path), outcome, took, remarks(m))
}

// waitsFor describes what a step waits for.
func waitsFor(what string) string {
	switch what {
	case "time":
		return "its time"
	case "approval":
		return "an approval"
	case "form":
		return "a form"
	case "retry":
		return "its next attempt"
	}
	return cli.Cell(what, 40)
}

// describeStep describes what a step does, by its definition.
func (d *timelineWriter) describeStep(path string) string {
	if d.Source == nil {
		return ""
	}
	step := d.Source.Step(path)
	if step == nil || strings.HasSuffix(path, "]") { // one pass of it
		return ""
	}
	o := workflow.OutlineOf(step)
	return strings.TrimRight(cli.Cell(strings.TrimSpace(o.Kind+" "+o.Of), 50), " ")
}

// remarks returns attempts, waits and the error of a step.
func remarks(m *timeline.Mark) string {
	var parts []string
	if m.Attempts > 1 {
		parts = append(parts, cli.Count(m.Attempts, "attempt"))
	}
	waited := map[string]time.Duration{}
	for _, w := range m.Waits {
		if !w.To.IsZero() {
			waited[w.What] += w.To.Sub(w.From)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(waited)) {
		parts = append(parts, fmt.Sprintf("waited %s for %s", formatDuration(waited[what]), waitsFor(what)))
	}
	if m.Fault != nil {
		parts = append(parts, cli.Cell(string(m.Fault.Kind)+": "+m.Fault.Message, 120))
	}
	return strings.Join(parts, "; ")
}

// bar draws when a step was running, and when it waited.
func (d *timelineWriter) bar(m *timeline.Mark, end time.Time) string {
	place := func(t time.Time) int {
		return min(barWidth-1, max(0, int(int64(barWidth)*int64(t.Sub(d.Start))/int64(d.total))))
	}
	cells := []rune(strings.Repeat(" ", barWidth))
	fill := func(from, to time.Time, with rune) {
		for i := place(from); i <= place(to); i++ {
			cells[i] = with
		}
	}
	fill(m.Began, end, '━')
	for _, w := range m.Waits {
		to := w.To
		if to.IsZero() {
			to = end
		}
		if place(to) > place(w.From) {
			fill(w.From, to, '┄')
		}
	}
	return "▕" + string(cells) + "▏"
}

// offset formats a time since the start of a run.
func offset(d time.Duration) string { return "+" + formatDuration(d) }

// formatDuration writes a duration with three digits or so.
func formatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.2fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
