package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/runlog"
	"sallyport/gateway/workflow/spec"
)

const (
	// barWidth is that of the bars of a timeline, in characters.
	barWidth = 24
	// shownPasses is how many passes of a loop a timeline shows at most; of more, the first, the last and those that went wrong.
	shownPasses = 10
	edgePasses  = 3
	wrongPasses = 5
)

// stretch is a time in which a step waited.
type stretch struct {
	from, to time.Time // to is zero as long as it waits
	what     string
}

// mark is a step in a timeline.
type mark struct {
	path, name   string
	began, ended time.Time
	attempts     int
	outcome      string
	fault        *workflow.Fault
	waits        []stretch
	kids         []*mark
	pass         bool // of a loop
}

// chart is what the events of a run come to.
type chart struct {
	marks  map[string]*mark
	order  []*mark
	notes  []string // what was done to the run as a whole
	start  time.Time
	last   time.Time
	source *spec.Definition
}

func newChart() *chart { return &chart{marks: map[string]*mark{}} }

// add takes the next event.
func (c *chart) add(e workflow.Event) {
	if c.start.IsZero() {
		c.start = e.Time
	}
	c.last = e.Time
	switch e.Kind {
	case runlog.Created:
		c.source = definitionOf(e.Start)
	case runlog.Reentered, runlog.Stopping:
		word := map[workflow.EventKind]string{runlog.Reentered: "resumed", runlog.Stopping: "canceled"}[e.Kind]
		c.notes = append(c.notes, fmt.Sprintf("%s %s by %s", offset(e.Time.Sub(c.start)), word, cell(e.By, 60)))
	case runlog.Began, runlog.Retrying, runlog.Waits, runlog.Answered, runlog.Ended:
		c.at(e).add(e)
	case runlog.Claimed, runlog.Over:
	}
}

// at is the mark of an event's step.
func (c *chart) at(e workflow.Event) *mark {
	m := c.marks[e.Path]
	if m == nil {
		m = &mark{path: e.Path, began: e.Time}
		c.marks[e.Path] = m
		c.order = append(c.order, m)
	}
	return m
}

func (m *mark) add(e workflow.Event) {
	if n := len(m.waits); n > 0 && m.waits[n-1].to.IsZero() {
		m.waits[n-1].to = e.Time
	}
	switch e.Kind {
	case runlog.Began:
		if !m.ended.IsZero() { // it is made again
			m.began = e.Time
		}
		m.attempts, m.outcome, m.fault, m.ended = max(m.attempts, e.Attempt), "", nil, time.Time{}
	case runlog.Retrying:
		m.fault = e.Error
		m.waits = append(m.waits, stretch{from: e.Time, what: "retry"})
	case runlog.Waits:
		what := "something"
		if e.Pending != nil {
			what = e.Pending.For
		}
		m.waits = append(m.waits, stretch{from: e.Time, what: what})
	case runlog.Ended:
		m.ended, m.outcome, m.fault = e.Time, e.Outcome, e.Error
	}
}

// definitionOf reads a run's definition again, to say what its steps do; nil where that is not possible.
func definitionOf(s *workflow.Started) *spec.Definition {
	if s == nil {
		return nil
	}
	d, err := spec.Parse(s.Path, []byte(s.Source), func(name string) ([]byte, error) { return []byte(s.Files[name]), nil })
	if err != nil {
		return nil
	}
	return d
}

// above is the path that a path is the next part of; "" for one of the definition's own steps.
func above(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// tree puts steps below those that they stand in, and returns the outermost.
func (c *chart) tree() []*mark {
	root := &mark{}
	for _, m := range c.order {
		m.kids = nil
	}
	for _, m := range c.order {
		up := above(m.path)
		for up != "" && c.marks[up] == nil {
			up = above(up)
		}
		parent := cmp.Or(c.marks[up], root)
		m.name = strings.TrimPrefix(strings.TrimPrefix(m.path, parent.path), ".")
		m.pass = parent != root && strings.HasPrefix(m.path[len(parent.path):], "[") && strings.Count(m.name, "[") == 1 && strings.HasSuffix(m.name, "]")
		parent.kids = append(parent.kids, m)
		for m.began.Before(parent.began) && parent != root { // what stands in it was first
			parent.began = m.began
		}
	}
	for _, m := range c.order {
		slices.SortStableFunc(m.kids, before)
	}
	return root.kids
}

// before is the order of steps that stand side by side: passes by their numbers, all others as they began.
func before(a, b *mark) int {
	if a.pass && b.pass {
		return cmp.Or(len(a.name)-len(b.name), strings.Compare(a.name, b.name))
	}
	return a.began.Compare(b.began)
}

// text draws the timeline, as it is at a time.
func (c *chart) text(now time.Time) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	d := drawing{chart: c, out: table, end: now}
	d.total = max(now.Sub(c.start), time.Millisecond)
	fmt.Fprintln(table, "  START\t\tSTEP\tDOES\tOUTCOME\tTOOK\t")
	d.all(c.tree(), "")
	_ = table.Flush() // to a builder
	for _, note := range c.notes {
		fmt.Fprintln(&b, "  "+note)
	}
	return blanks.ReplaceAllString(b.String(), "")
}

// blanks are those at the ends of lines.
var blanks = regexp.MustCompile(`(?m) +$`)

// drawing writes the rows of a timeline.
type drawing struct {
	*chart
	out   *tabwriter.Writer
	end   time.Time
	total time.Duration
}

// all writes steps and what stands in them; of a long loop some of it.
func (d *drawing) all(marks []*mark, indent string) {
	shown, hidden := pick(marks)
	for _, m := range shown {
		if m == nil {
			fmt.Fprintf(d.out, "  \t\t%s%s\t\t\t\t\n", indent, passesText(hidden))
			continue
		}
		if only := m.only(); only != nil {
			d.row(only, indent)
			continue
		}
		d.row(m, indent)
		d.all(m.kids, indent+"  ")
	}
}

// only is a pass and the one step in it as one; nil where there are more.
func (m *mark) only() *mark {
	if !m.pass || len(m.kids) != 1 || len(m.kids[0].kids) > 0 || m.outcome != m.kids[0].outcome {
		return nil
	}
	one := *m.kids[0]
	one.name = m.name + " " + one.name
	return &one
}

// pick chooses which steps to show; nil stands for the hidden ones.
func pick(marks []*mark) (shown, hidden []*mark) {
	passes := 0
	for _, m := range marks {
		if m.pass {
			passes++
		}
	}
	if passes <= shownPasses {
		return marks, nil
	}
	wrong, seen := 0, 0
	for i, m := range marks {
		bad := m.outcome != "ok" && m.outcome != "cached"
		switch {
		case !m.pass || seen < edgePasses || i >= len(marks)-edgePasses:
			shown = append(shown, m)
		case bad && wrong < wrongPasses:
			wrong++
			shown = append(shown, m)
		default:
			if len(hidden) == 0 {
				shown = append(shown, nil)
			}
			hidden = append(hidden, m)
		}
		if m.pass {
			seen++
		}
	}
	return shown, hidden
}

// passesText says what became of passes that are not shown.
func passesText(hidden []*mark) string {
	counts := map[string]int{}
	var least, most time.Duration
	for i, m := range hidden {
		took := m.ended.Sub(m.began)
		if counts[cmp.Or(m.outcome, "under way")]++; m.ended.IsZero() {
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
	return fmt.Sprintf("... %d more: %s; %s to %s each", len(hidden), strings.Join(parts, ", "), brief(least), brief(most))
}

func (d *drawing) row(m *mark, indent string) {
	end, took := m.ended, ""
	if end.IsZero() {
		end = d.end
	} else {
		took = brief(end.Sub(m.began))
	}
	outcome := m.outcome
	if outcome == "" {
		outcome = "under way"
		if n := len(m.waits); n > 0 && m.waits[n-1].to.IsZero() {
			outcome = "waits for " + waitsFor(m.waits[n-1].what)
		}
	}
	start, bar := offset(m.began.Sub(d.start)), d.bar(m, end)
	if m.began.Before(d.start) && !m.ended.IsZero() {
		start, bar = "taken over", strings.Repeat(" ", barWidth+2)
	}
	fmt.Fprintf(d.out, "  %s\t%s\t%s%s\t%s\t%s\t%s\t%s\n", start, bar, indent, cell(m.name, 60), d.does(m.path), outcome, took, m.remarks())
}

// waitsFor words what a step waits for.
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
	return cell(what, 40)
}

// does says what a step does, by the definition.
func (d *drawing) does(path string) string {
	if d.source == nil {
		return ""
	}
	step := d.source.Step(path)
	if step == nil || strings.HasSuffix(path, "]") { // one pass of it
		return ""
	}
	o := workflow.OutlineOf(step)
	return strings.TrimRight(cell(strings.TrimSpace(o.Kind+" "+o.Of), 50), " ")
}

// remarks are what else there is to know of a step.
func (m *mark) remarks() string {
	var parts []string
	if m.attempts > 1 {
		parts = append(parts, number(m.attempts, "attempt"))
	}
	waited := map[string]time.Duration{}
	for _, w := range m.waits {
		if !w.to.IsZero() {
			waited[w.what] += w.to.Sub(w.from)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(waited)) {
		parts = append(parts, fmt.Sprintf("waited %s for %s", brief(waited[what]), waitsFor(what)))
	}
	if m.fault != nil {
		parts = append(parts, cell(string(m.fault.Kind)+": "+m.fault.Message, 120))
	}
	return strings.Join(parts, "; ")
}

// bar shows when a step was under way, and when it waited.
func (d *drawing) bar(m *mark, end time.Time) string {
	place := func(t time.Time) int {
		return min(barWidth-1, max(0, int(int64(barWidth)*int64(t.Sub(d.start))/int64(d.total))))
	}
	cells := []rune(strings.Repeat(" ", barWidth))
	fill := func(from, to time.Time, with rune) {
		for i := place(from); i <= place(to); i++ {
			cells[i] = with
		}
	}
	fill(m.began, end, '━')
	for _, w := range m.waits {
		to := w.to
		if to.IsZero() {
			to = end
		}
		if place(to) > place(w.from) {
			fill(w.from, to, '┄')
		}
	}
	return "▕" + string(cells) + "▏"
}

// offset is a time since the start of a run.
func offset(d time.Duration) string { return "+" + brief(d) }

// brief writes a duration with three digits or so.
func brief(d time.Duration) string {
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
