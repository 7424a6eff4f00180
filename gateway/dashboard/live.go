package dashboard

import (
	"cmp"
	"strings"
	"time"

	"sallyport/gateway/approvals"
	"sallyport/gateway/execution"
	"sallyport/gateway/executor"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// LivePage is an execution that has not ended.
type LivePage struct {
	executor.Live
	Chart CallChart
	// Output is what it has printed last, in pieces of one stream each.
	Output    []Piece
	Approvals []approvals.Approval
	// MayCancel says that the user may cancel it.
	MayCancel bool
}

// Piece is text of one stream.
type Piece struct{ Stream, Text string }

// calledTools returns the names of the tools of calls.
func calledTools(calls []executor.LiveCall) (names []string) {
	for _, call := range calls {
		names = append(names, call.Tool.String())
	}
	return names
}

// showLive returns the page of a running execution.
func (d *Dashboard) showLive(r *request, live executor.Live) (ExecutionPage, error) {
	r.setTitle(cmp.Or(sanitize.Line(execution.Title(live.Code, calledTools(live.Calls)), maxTitle), live.ID), Crumb{"Executions", "/ui/executions"})
	record := history.Record{ID: live.ID, Started: live.Started, Duration: time.Since(live.Started), Made: live.Made}
	for _, call := range live.Calls {
		outcome := call.Outcome
		if outcome == "" {
			outcome = "running"
		}
		record.Calls = append(record.Calls, toolcall.RecordedCall{Tool: call.Tool, Begun: call.Begun, Duration: call.Duration, Outcome: outcome})
	}
	p := LivePage{Live: live, Chart: callChart(record), Output: pieces(live.Output), MayCancel: tool.May(r.Context(), tool.ScopeExecute)}
	var err error
	p.Approvals, err = d.approvalsOf(r, live.ID)
	return ExecutionPage{Record: record, Live: &p, Source: source("Code", live.Code, 0)}, err
}

// pieces joins the output of one stream without a break.
func pieces(all []execution.Printed) (list []Piece) {
	for _, p := range all {
		if n := len(list); n > 0 && list[n-1].Stream == p.Stream {
			list[n-1].Text += p.Text
			continue
		}
		list = append(list, Piece{p.Stream, p.Text})
	}
	for i := range list {
		list[i].Text = visibleLines(list[i].Text)
	}
	return list
}

// visibleLines returns a program's output for display, with invisible characters written out.
func visibleLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = visible(lines[i], maxWords)
	}
	return strings.Join(lines, "\n")
}

func (d *Dashboard) cancelExecution(r *request) (string, error) {
	id := r.PathValue("id")
	if err := d.service.CancelExecution(r.Context(), id); err != nil {
		e := tool.AsError(err)
		if e.Kind != tool.Invalid {
			return "", err
		}
		r.warn("Nothing was done: " + e.Message + ".")
		return executionPath(id), nil
	}
	if r.PostFormValue("from") == "playground" {
		return playgroundAt(id), nil
	}
	r.say("Canceling.")
	return "/ui/executions", nil
}
