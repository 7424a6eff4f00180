package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/executor"
	"sallyport/gateway/history"
	"sallyport/gateway/plugin"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Records are the executions of the caller, or of all principals for an operator.
type Records interface {
	Executions(ctx context.Context, f history.Filter) (history.Page, error)
	Record(ctx context.Context, id string) (history.Record, error)
	JournalCalls(ctx context.Context, id string, after, limit int) (history.JournaledCalls, error)
	Running(ctx context.Context) []executor.Live
	LiveOf(ctx context.Context, id string) (executor.Live, bool)
	CancelExecution(ctx context.Context, id string) error
}

// ExecutionsPage lists executions.
type ExecutionsPage struct {
	history.Page
	Filter history.Filter
	Pager  Pager
	// Running are those that have not ended, the oldest first.
	Running []executor.Live
	// Filtered says that not all are asked for.
	Filtered bool
	// Statuses and Languages can be chosen.
	Statuses, Languages []string
}

// maxTitle is the maximum length of the title of a page, in characters.
const maxTitle = 120

// pageSize is how many executions, and runs, are on a page.
const pageSize = 50

func (d *Dashboard) executions(r *request) (any, error) {
	query := r.URL.Query()
	f := history.Filter{
		ID: strings.TrimSpace(query.Get("id")), Language: query.Get("language"), Status: history.Status(query.Get("status")), Principal: query.Get("principal"),
		Text:   strings.TrimSpace(query.Get("text")),
		Offset: r.number("offset"), Limit: pageSize,
	}
	page, err := d.service.Executions(r.Context(), f)
	page.Principals = slices.DeleteFunc(page.Principals, func(name string) bool { return name == "" || sanitize.Line(name, 80) != name })
	p := ExecutionsPage{
		Page: page, Running: d.service.Running(r.Context()), Filter: f, Filtered: f.ID+f.Language+string(f.Status)+f.Principal+f.Text != "", Pager: r.pager(f.Offset, len(page.Executions), page.Total),
		Statuses: history.Statuses(), Languages: []string{"python", "typescript"},
	}
	if page.Estimated {
		p.Pager.Text = strings.Replace(p.Pager.Text, " of ", " of about ", 1)
	}
	return p, err
}

// pager returns the pager of a list with shown items from an offset on.
func (r *request) pager(offset, shown, total int) Pager {
	p := Pager{}
	if offset > 0 {
		p.Prev = r.with("offset", fmt.Sprint(max(offset-pageSize, 0)))
	}
	if offset+shown < total {
		p.Next = r.with("offset", fmt.Sprint(offset+shown))
	}
	if p.Prev != "" || p.Next != "" {
		p.Text = fmt.Sprintf("%s to %s of %s", groupDigits(int64(offset+1)), groupDigits(int64(offset+shown)), groupDigits(int64(total)))
	}
	return p
}

// ExecutionPage is one execution.
type ExecutionPage struct {
	history.Record
	// Live is set for a running execution, which has no journal on the page.
	Live   *LivePage
	Source Source
	Chart  CallChart
	// Journal is nil if there is none; NoJournal says why. Pager pages its calls.
	Journal   *history.JournaledCalls
	NoJournal string
	Pager     Pager
	// Shown are results as plugins show them, by the number of the call.
	Shown     map[int]ShownResult
	Approvals []approvals.Approval
	// Resumable says that a program can continue with it.
	Resumable bool
	// Reusable says that the user can change its program and run it again.
	Reusable bool
}

func (d *Dashboard) execution(r *request) (any, error) {
	id := r.PathValue("id")
	if live, ok := d.service.LiveOf(r.Context(), id); ok {
		return d.showLive(r, live)
	}
	record, err := d.service.Record(r.Context(), id)
	if err != nil {
		return nil, err
	}
	r.setTitle(cmp.Or(sanitize.Line(record.Title, maxTitle), record.ID), Crumb{"Executions", "/ui/executions"})
	p := ExecutionPage{Record: record, Source: source("Code", record.Code, record.Line), Chart: callChart(record)}
	if err := d.journal(r, &p); err != nil {
		return nil, err
	}
	p.Approvals, err = d.approvalsOf(r, id)
	p.Reusable = record.Principal == tool.Principal(r.Context()) && tool.May(r.Context(), tool.ScopeExecute) && len(record.Code) <= maxProgram
	p.Resumable = record.Status != "ok" && p.Journal != nil && p.Journal.Resumed == ""
	return p, err
}

// maxJournaled is the number of a journal's calls per page.
const maxJournaled = 50

// journal adds a page of the journal.
func (d *Dashboard) journal(r *request, p *ExecutionPage) error {
	after := r.number("after")
	view, err := d.service.JournalCalls(r.Context(), p.ID, after, maxJournaled)
	if e := tool.AsError(err); err != nil && e.Kind == tool.NotFound {
		p.NoJournal = strings.TrimSuffix(e.Message+"; "+e.Hint, "; ")
		return nil
	}
	if err != nil {
		return err
	}
	p.Journal = &view
	d.showResults(r, p)
	if after > 0 {
		p.Pager.Prev = r.with("after", fmt.Sprint(max(after-maxJournaled, 0))) + "#journal"
	}
	if end := after + len(view.Calls); end < view.Total {
		p.Pager.Next = r.with("after", fmt.Sprint(end)) + "#journal"
	}
	if p.Pager != (Pager{}) {
		p.Pager.Text = fmt.Sprintf("%s to %s of %s", groupDigits(int64(after+1)), groupDigits(int64(after+len(view.Calls))), groupDigits(int64(view.Total)))
	}
	return nil
}

// ShownResult is a result as a plugin shows it; Problem says why it cannot.
type ShownResult struct {
	plugin.Rendered
	Problem string
}

// renderTime bounds the time that plugins may take for one page.
const renderTime = 5 * time.Second

// showResults has plugins show the results on the page that are there in full.
func (d *Dashboard) showResults(r *request, p *ExecutionPage) {
	if d.opts.Renderers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), renderTime)
	defer cancel()
	p.Shown = map[int]ShownResult{}
	for _, c := range p.Journal.Calls {
		if c.Result == "" || len(c.Result) < c.ResultSize || c.Failed || c.Problem != "" {
			continue
		}
		switch shown, err := d.opts.Renderers.Render(ctx, c.Tool, c.Result); {
		case err != nil:
			p.Shown[c.Number] = ShownResult{Problem: err.Error()}
		case shown != nil:
			p.Shown[c.Number] = ShownResult{Rendered: *shown}
		}
	}
}

// approvalsOf returns the approvals that an execution or a run requested.
func (d *Dashboard) approvalsOf(r *request, id string) ([]approvals.Approval, error) {
	all, err := d.service.Approvals(r.Context())
	return slices.DeleteFunc(all, func(a approvals.Approval) bool { return a.Execution != id && a.Root != id }), err
}

// CallChart is the calls of an execution on a line of time.
type CallChart struct {
	Calls []CallRow
	// Lanes is the maximum number of concurrent calls; Height is the height of the chart, in pixels.
	Lanes, Height int
	// Total is the length of the timeline, Text a description.
	Total time.Duration
	Text  string
	// More is how many calls are not shown.
	More int
}

// CallRow is one call.
type CallRow struct {
	toolcall.RecordedCall
	Number int
	// Begun is since the start of the execution, "" where that is not known.
	Begun string
	Span  Span
	// Lane is the first one that was free when it began, Y its position, in pixels.
	Lane, Y int
	Path    string
}

const (
	// maxRows is the maximum number of calls in a chart, maxLanes the maximum number of lanes.
	maxRows, maxLanes = 300, 12
	laneHeight        = 14
)

// callChart lays out the calls of an execution.
func callChart(r history.Record) CallChart {
	c := CallChart{Total: r.Duration, More: max(0, r.Made-min(len(r.Calls), maxRows))}
	calls := r.Calls[:min(len(r.Calls), maxRows)]
	for _, call := range calls {
		if !call.Begun.IsZero() {
			c.Total = max(c.Total, call.Begun.Add(call.Duration).Sub(r.Started))
		}
	}
	var free []time.Time // when each lane's last call ended
	for i, call := range calls {
		row := CallRow{RecordedCall: call, Number: i + 1, Begun: offset(r.Started, call.Begun), Path: toolPath(call.Tool)}
		if !call.Begun.IsZero() {
			end := call.Begun.Add(call.Duration)
			if call.Outcome == "unfinished" || call.Outcome == "running" {
				end = r.Started.Add(c.Total)
			}
			row.Span = span(r.Started, c.Total, call.Begun, end)
			row.Lane, free = lane(free, call.Begun, end)
			row.Y = row.Lane*laneHeight + 2
		}
		c.Calls = append(c.Calls, row)
	}
	c.Lanes = len(free)
	c.Height = c.Lanes*laneHeight + 2
	c.Text = fmt.Sprintf("%s in %s, at most %s at once", plural(int64(len(c.Calls)), "call", "calls"), duration(c.Total), groupDigits(int64(max(c.Lanes, 1))))
	return c
}

// lane returns the first lane that is free at from, and marks it as used until to.
func lane(free []time.Time, from, to time.Time) (int, []time.Time) {
	for i, end := range free {
		if !end.After(from) || i == maxLanes-1 {
			free[i] = to
			return i, free
		}
	}
	return len(free), append(free, to)
}

// toolPath returns the path of a tool's page, "" for a tool of no upstream.
func toolPath(id tool.ID) string {
	if id.Upstream == "" || strings.Contains(id.Name, "/") {
		return ""
	}
	return "/ui/catalogue/" + url.PathEscape(id.Upstream) + "/" + url.PathEscape(id.Name)
}

// executionPath returns the path of the page of an execution or a run, "" for another id.
func executionPath(id string) string {
	switch {
	case strings.HasPrefix(id, "e-"):
		return "/ui/executions/" + url.PathEscape(id)
	case strings.HasPrefix(id, "r-"):
		return "/ui/runs/" + url.PathEscape(id)
	}
	return ""
}

// principalName returns the name of a principal for display.
func principalName(principal string) string { return cmp.Or(sanitize.Line(principal, 80), "local") }
