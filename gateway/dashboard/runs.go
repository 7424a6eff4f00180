package dashboard

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/timeline"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// RunsPage lists runs of workflows.
type RunsPage struct {
	Runs     []workflow.Run
	Filter   workflow.Filter
	Pager    Pager
	Statuses []workflow.Status
	Names    []string
}

// maxRuns is the maximum number of listed runs.
const maxRuns = 2000

func (d workflowPages) runs(r *request) (any, error) {
	engine, err := d.engine()
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	p := RunsPage{
		Filter:   workflow.Filter{Workflow: query.Get("workflow"), Status: workflow.Status(query.Get("status")), Limit: maxRuns},
		Statuses: []workflow.Status{workflow.Queued, workflow.Running, workflow.Waiting, workflow.OK, workflow.Failed, workflow.Canceled},
	}
	for _, w := range d.visibleWorkflows(r) {
		p.Names = append(p.Names, w.Name)
	}
	all, err := engine.Runs(r.Context(), p.Filter)
	p.Runs, p.Pager = paginate(r, all, pageSize)
	return p, err
}

// RunPage is one run.
type RunPage struct {
	workflow.Run
	// Flow is the graph of its steps, nil if its definition is unknown.
	Flow []FlowStep
	Rows []RunRow
	// Notes are what was done to the run as a whole.
	Notes []timeline.Note
	Start time.Time
	// Forms are the open ones, Approvals those that it requested.
	Forms     []RunForm
	Approvals []approvals.Approval
	// From are the steps where a replay can begin. MayControl says that the user may control the run.
	From       []string
	MayControl bool
	// Inputs and Outputs are in JSON.
	Inputs, Outputs string
	// Moving says that it is not over, Cut that Rows lack the latest events.
	Moving, Cut bool
}

// RunForm is a form that a run waits for.
type RunForm struct {
	Step, Title string
	Fields      []Field
	// Known are the earlier answers.
	Known []Mark
	Until time.Time
}

// RunRow is a step in the timeline of a run.
type RunRow struct {
	*timeline.Mark
	// Depth is its nesting depth, Does its summary from the definition, State its current state.
	Depth int
	Does  string
	State string
	Begun string
	Span  Span
	Took  string
	// Rests are the intervals in which it waited.
	Rests []Span
	// Folded summarizes the outcomes of steps that are not shown; the rest of the row is empty then.
	Folded string
}

func (d workflowPages) run(r *request) (any, error) {
	engine, err := d.engine()
	if err != nil {
		return nil, err
	}
	run, err := engine.Run(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	r.setTitle(sanitize.Line(run.Workflow, maxTitle), Crumb{"Runs", "/ui/runs"})
	p := RunPage{Run: run, MayControl: tool.May(r.Context(), tool.ScopeWorkflow), Moving: !run.Status.Over(), Inputs: string(run.Inputs), Outputs: string(run.Outputs)}
	chart, cut, err := d.chart(r, engine, run.ID)
	if err != nil {
		return nil, err
	}
	p.Cut = cut
	p.draw(chart)
	for _, waiting := range run.Waiting {
		if waiting.For == "form" {
			p.Forms = append(p.Forms, runForm(waiting))
		}
	}
	p.Approvals, err = d.approvalsOf(r, run.ID)
	return p, err
}

// maxEvents is how many events of a run are read for its page.
const maxEvents = 20_000

// chart reads the events of a run; cut says that there are more than it has read.
func (d workflowPages) chart(r *request, engine Workflows, id string) (_ *timeline.Chart, cut bool, err error) {
	c, n := timeline.New(), 0
	for e, err := range engine.Events(r.Context(), id, 0) {
		if err != nil {
			return nil, false, err
		}
		if n++; n > maxEvents {
			return c, true, nil
		}
		e.Input, e.Output = nil, nil // may be large
		c.Add(e)
	}
	return c, false, nil
}

// RunLogPage is a part of a run's log.
type RunLogPage struct {
	ID     string
	Events []workflow.Event
	Pager  Pager
}

// runLog shows the events from ?offset= on.
func (d workflowPages) runLog(r *request) (any, error) {
	engine, err := d.engine()
	if err != nil {
		return nil, err
	}
	p := RunLogPage{ID: r.PathValue("id")}
	r.setTitle("Log", Crumb{"Runs", "/ui/runs"}, Crumb{p.ID, r.runPath()})
	at := max(r.number("offset"), 0)
	for e, err := range engine.Events(r.Context(), p.ID, at) {
		if err != nil {
			return nil, err
		}
		if len(p.Events) == pageSize {
			p.Pager.Next = r.with("offset", strconv.Itoa(at+pageSize))
			break
		}
		p.Events = append(p.Events, e)
	}
	if at > 0 {
		p.Pager.Prev = r.with("offset", strconv.Itoa(max(at-pageSize, 0)))
	}
	if len(p.Events) > 0 {
		p.Pager.Text = fmt.Sprintf("events %s to %s", groupDigits(int64(at+1)), groupDigits(int64(at+len(p.Events))))
	}
	return p, nil
}

// maxRunRows is how many steps of a run are shown.
const maxRunRows = 500

// draw makes the rows of a timeline.
func (p *RunPage) draw(c *timeline.Chart) {
	end := c.Last
	if p.Moving {
		end = time.Now()
	}
	p.Start, p.Notes, p.Flow = c.Start, c.Notes, newFlow(c, p.Moving)
	draw := drawing{chart: c, end: end, total: max(end.Sub(c.Start), time.Millisecond)}
	draw.all(c.Tree(), 0)
	p.Rows, p.From = draw.rows, draw.from
}

// drawing makes rows of steps.
type drawing struct {
	chart *timeline.Chart
	end   time.Time
	total time.Duration
	rows  []RunRow
	from  []string
}

// all adds steps and what stands in them; of a long loop some of it.
func (d *drawing) all(marks []*timeline.Mark, depth int) {
	shown, hidden := timeline.Pick(marks)
	for _, m := range shown {
		switch {
		case len(d.rows) >= maxRunRows:
			return
		case m == nil:
			d.rows = append(d.rows, RunRow{Mark: &timeline.Mark{}, Depth: depth, Folded: foldedText(hidden)})
			continue
		}
		if depth == 0 && !m.Ended.IsZero() && sanitize.Line(m.Path, 200) == m.Path {
			d.from = append(d.from, m.Path)
		}
		if only := m.Collapse(); only != nil {
			d.rows = append(d.rows, d.row(only, depth))
			continue
		}
		d.rows = append(d.rows, d.row(m, depth))
		d.all(m.Kids, depth+1)
	}
}

func (d *drawing) row(m *timeline.Mark, depth int) RunRow {
	end := m.Ended
	row := RunRow{Mark: m, Depth: min(depth, 8), Does: d.does(m.Path), State: markState(m), Begun: offset(d.chart.Start, m.Began)}
	if end.IsZero() {
		end = d.end
	}
	row.Took = duration(max(end.Sub(m.Began), 0))
	row.Span = span(d.chart.Start, d.total, m.Began, end)
	for _, w := range m.Waits {
		to := w.To
		if to.IsZero() {
			to = end
		}
		row.Rests = append(row.Rests, span(d.chart.Start, d.total, w.From, to))
	}
	return row
}

// does returns the summary of a step from the definition.
func (d *drawing) does(path string) string {
	if d.chart.Source == nil || strings.HasSuffix(path, "]") {
		return ""
	}
	step := d.chart.Source.Step(path)
	if step == nil {
		return ""
	}
	o := workflow.OutlineOf(step)
	return strings.TrimSpace(o.Kind + " " + o.Of)
}

// foldedText summarizes the outcomes of loop passes that are not shown.
func foldedText(hidden []*timeline.Mark) string {
	counts, order := map[string]int{}, []string{}
	for _, m := range hidden {
		outcome := m.Outcome
		if outcome == "" {
			outcome = "under way"
		}
		if counts[outcome]++; counts[outcome] == 1 {
			order = append(order, outcome)
		}
	}
	slices.Sort(order)
	parts := make([]string, len(order))
	for i, outcome := range order {
		parts[i] = fmt.Sprint(counts[outcome], " ", outcome)
	}
	return plural(int64(len(hidden)), "pass", "passes") + " not shown: " + strings.Join(parts, ", ")
}

// runForm is a form that waits, as a page asks it.
func runForm(p workflow.Pending) RunForm {
	var ask forms.Ask
	f := RunForm{Step: p.Step, Until: p.Until}
	if json.Unmarshal(p.Form, &ask) != nil {
		return f
	}
	f.Title, f.Fields = ask.Title, fields(ask.Fields, nil, false)
	for i := range f.Fields {
		f.Fields[i].ID = fmt.Sprintf("%s-%s", f.Fields[i].ID, p.Step)
	}
	for name, value := range ask.Filled {
		f.Known = append(f.Known, Mark{name, textOf(value)})
	}
	slices.SortFunc(f.Known, func(a, b Mark) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// answerForm answers a form of a run. What is right of an answer is kept.
func (d workflowPages) answerForm(r *request) (string, error) {
	engine, err := d.engine()
	if err != nil {
		return "", err
	}
	given := map[string]any{}
	for key, texts := range r.PostForm {
		if name, ok := strings.CutPrefix(key, fieldPrefix); ok && len(texts) > 0 {
			given[name] = texts[0]
			if slices.Contains(r.PostForm["several"], name) {
				given[name] = anyOf(texts)
			}
		}
	}
	values, err := json.Marshal(given)
	if err != nil {
		return "", err
	}
	if _, err := engine.Answer(r.Context(), r.PathValue("id"), r.PostFormValue("step"), values); err != nil {
		return d.runError(r, err)
	}
	r.say("Answered.")
	return r.runPath(), nil
}

func (d workflowPages) cancelRun(r *request) (string, error) {
	engine, err := d.engine()
	if err != nil {
		return "", err
	}
	if err := engine.Cancel(r.Context(), r.PathValue("id")); err != nil {
		return d.runError(r, err)
	}
	r.say("Canceling.")
	return r.runPath(), nil
}

func (d workflowPages) resumeRun(r *request) (string, error) {
	engine, err := d.engine()
	if err != nil {
		return "", err
	}
	if _, err := engine.Resume(r.Context(), r.PathValue("id")); err != nil {
		return d.runError(r, err)
	}
	r.say("Resumed.")
	return r.runPath(), nil
}

func (d workflowPages) replayRun(r *request) (string, error) {
	engine, err := d.engine()
	if err != nil {
		return "", err
	}
	step := r.PostFormValue("step")
	if step == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "the form names no step"}
	}
	again, err := engine.Replay(r.Context(), r.PathValue("id"), step)
	if err != nil {
		return d.runError(r, err)
	}
	r.say("This is a new run that repeats everything from " + step + " on.")
	return "/ui/runs/" + url.PathEscape(again.ID), nil
}

// runError shows an invalid operation on the run's page; other errors are returned.
func (d workflowPages) runError(r *request, err error) (string, error) {
	e := tool.AsError(err)
	if e.Kind != tool.Invalid {
		return "", err
	}
	r.warn("Nothing was done: " + e.Message + ".")
	return r.runPath(), nil
}

// runPath is the page of the run that a request is about.
func (r *request) runPath() string { return "/ui/runs/" + url.PathEscape(r.PathValue("id")) }
