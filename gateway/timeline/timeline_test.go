package timeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/gateway/timeline"
	"sallyport/internal/store"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

func open(t *testing.T, in *store.Store, waiting int) *timeline.Timeline {
	t.Helper()
	line, err := timeline.Open(timeline.Options{Records: in, Load: func() (int, int) { return 1, waiting }, Logger: testutil.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func graphs(t *testing.T, line *timeline.Timeline, r timeline.Range) timeline.Graphs {
	t.Helper()
	report, err := line.Graphs(tool.WithOperator(t.Context(), "op"), r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func program(status sandbox.Status, took time.Duration) timeline.Program {
	return timeline.Program{Status: status, Ended: time.Now(), Duration: took, Client: "editor 1"}
}

// TestGatewaysOnOneStore: gateways on a store add up, also after each was opened again, in every range.
func TestGatewaysOnOneStore(t *testing.T) {
	t.Parallel()
	in := store.Memory()
	defer func() { _ = in.Close() }()
	for range 3 { // the second and third are the first one after a restart
		one, other := open(t, in, 0), open(t, in, 0)
		for range 49 {
			one.AddProgram(program(sandbox.OK, 10*time.Millisecond))
			graphs(t, one, timeline.Hour) // which saves
			other.AddProgram(program(sandbox.OK, 20*time.Millisecond))
		}
		one.AddProgram(program(sandbox.TimedOut, time.Second))
		other.AddProgram(program(sandbox.Failed, time.Second))
		one.Close()
		other.Close()
	}
	line := open(t, in, 0)
	for _, r := range timeline.Ranges() {
		report := graphs(t, line, r)
		total := report.Total
		if total.Programs != 300 || total.Failed != 6 || total.Failures["timeout"] != 3 || total.Failures["failed"] != 3 {
			t.Errorf("%s: %+v", r, total)
		}
		if total.P50MS < 9 || total.P50MS > 22 || total.P99MS < 900 || total.P99MS > 1100 {
			t.Errorf("%s: p50 %v, p99 %v", r, total.P50MS, total.P99MS)
		}
		if sum := sumOf(report); sum != 300 || len(report.Clients) != 1 || report.Clients[0] != (timeline.Share{Name: "editor 1", Count: 300}) {
			t.Errorf("%s: %d in its steps, %v", r, sum, report.Clients)
		}
	}
}

func sumOf(r timeline.Graphs) (programs int) {
	for _, step := range r.Steps {
		programs += step.Programs
	}
	return programs
}

// TestOverTime: what happened is in its step, and only in the ranges that reach so far back.
func TestOverTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := open(t, nil, 4)
		line.Start()
		defer line.Close()
		line.AddProgram(program(sandbox.OK, time.Second))
		line.AddMoney(0.0125)
		line.AddMoney(0.5)
		time.Sleep(3 * time.Hour)
		line.AddProgram(program(sandbox.OK, time.Second))
		late := program(sandbox.OK, time.Second) // of another process
		late.Ended = time.Now().Add(-2 * time.Hour)
		line.AddProgram(late)
		late.Ended = time.Now().Add(24 * time.Hour) // by a wrong clock
		line.AddProgram(late)
		for r, want := range map[timeline.Range]int{timeline.Hour: 2, timeline.Day: 4, timeline.Week: 4, timeline.Month: 4} {
			report := graphs(t, line, r)
			if money := report.Total.Money; money != 0.5125 && r != timeline.Hour || money != 0 && r == timeline.Hour {
				t.Errorf("%s: %v was spent", r, money)
			}
			if got := sumOf(report); got != want || report.Total.Queue != 4 {
				t.Errorf("%s: %d programs, want %d, queue %d", r, got, want, report.Total.Queue)
			}
			last := report.Steps[len(report.Steps)-1]
			if end := last.Begin.Add(time.Duration(report.StepMS) * time.Millisecond); last.Begin.After(time.Now()) || !end.After(time.Now()) {
				t.Errorf("%s: the last step is from %v to %v, now is %v", r, last.Begin, end, time.Now())
			}
		}
		if sum := graphs(t, line, timeline.Day).Steps[95-8].Programs; sum != 1 {
			t.Errorf("two hours ago were %d programs", sum)
		}
		time.Sleep(25 * time.Hour)
		if day, week := sumOf(graphs(t, line, timeline.Day)), sumOf(graphs(t, line, timeline.Week)); day != 0 || week != 4 {
			t.Errorf("a day later, %d in a day, %d in a week", day, week)
		}
	})
}

// TestNames: the number and the length of names are bounded, and a tool that does not exist has none.
func TestNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, namesAreBounded) // all in one minute
}

func namesAreBounded(t *testing.T) {
	line := open(t, nil, 0)
	calls := line.CountCalls(func(_ context.Context, c tool.Call) (tool.Result, error) {
		switch {
		case strings.HasPrefix(c.Tool.Name, "made_up"):
			return tool.Result{}, &tool.Error{Kind: tool.NotFound}
		case c.Tool.Name == "broken":
			return tool.Result{}, errors.New("no")
		}
		return tool.Result{}, nil
	})
	call := func(name string, times int) {
		for range times {
			_, _ = calls(t.Context(), tool.Call{Tool: tool.ID{Upstream: "crm", Name: name}})
		}
	}
	call("order", 900)
	call("broken", 3)
	call("made_up", 1000)
	for i := range 1000 {
		call(fmt.Sprintf("tool%d%s", i, strings.Repeat("x\x1b", 10_000)), 1)
	}
	report := graphs(t, line, timeline.Hour)
	if report.Total.Calls != 2903 || report.Total.FailedCalls != 1003 || len(report.Tools) != 9 {
		t.Fatalf("%+v", report)
	}
	first, last := report.Tools[0], report.Tools[8]
	if first != (timeline.Share{Name: "crm.order", Count: 900}) || last.Name != "" || last.Count != 1994 {
		t.Errorf("first %v, last %v", first, last)
	}
	for _, one := range report.Tools {
		if len([]rune(one.Name)) > 130 || strings.Contains(one.Name, "\x1b") {
			t.Errorf("%q", one.Name)
		}
	}
}

// TestToolGraphs: the calls of one tool, over gateways and restarts; the time that they waited for an approval does not count.
func TestToolGraphs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := store.Memory()
		order, other := tool.ID{Upstream: "crm", Name: "order"}, tool.ID{Upstream: "crm", Name: "find"}
		for i := range 2 {
			line := open(t, in, 0)
			made := line.MeasureCalls(func(_ context.Context, c tool.Call) (tool.Result, error) {
				time.Sleep(10 * time.Millisecond)
				return tool.Result{Content: []tool.Content{{Type: "text", Text: strings.Repeat("x", 100+100*i)}}, IsError: len(c.Args) > 0}, nil
			})
			calls := line.CountCalls(func(ctx context.Context, c tool.Call) (tool.Result, error) {
				time.Sleep(time.Hour) // an approval
				if c.Execution == "refused" {
					return tool.Result{}, &tool.Error{Kind: tool.Denied}
				}
				return made(ctx, c)
			})
			for _, c := range []tool.Call{{Tool: order}, {Tool: order, Args: []byte("{}")}, {Tool: order, Execution: "refused"}, {Tool: other}} {
				_, _ = calls(t.Context(), c)
			}
			line.Close()
		}
		line := open(t, in, 0)
		report, err := line.ToolGraphs(tool.WithOperator(t.Context(), "op"), order, timeline.Day)
		if err != nil {
			t.Fatal(err)
		}
		if all := report.Total; all.Calls != 6 || all.FailedCalls != 4 || all.P99MS < 9 || all.P99MS > 12 || all.ResultBytes != 150 || all.Programs != 0 {
			t.Errorf("%+v", all)
		}
		sum := 0
		for _, step := range report.Steps {
			sum += step.Calls
		}
		if sum != 6 {
			t.Errorf("%d calls in the steps", sum)
		}
		if report, err = line.ToolGraphs(tool.WithOperator(t.Context(), "op"), tool.ID{Upstream: "crm", Name: "none"}, timeline.Day); err != nil || report.Total.Calls != 0 || report.Total.ResultBytes != 0 {
			t.Errorf("of no tool: %+v, %v", report.Total, err)
		}
		if _, err := line.ToolGraphs(t.Context(), order, timeline.Day); err == nil || tool.AsError(err).Kind != tool.Denied {
			t.Errorf("no operator: %v", err)
		}
	})
}

// TestOperatorsOnly: what all do is for operators, and only the known ranges exist.
func TestOperatorsOnly(t *testing.T) {
	t.Parallel()
	line := open(t, nil, 0)
	if _, err := line.Graphs(tool.WithPrincipal(t.Context(), "bob"), timeline.Hour); err == nil || tool.AsError(err).Kind != tool.Denied {
		t.Errorf("bob: %v", err)
	}
	if _, err := line.Graphs(tool.WithOperator(t.Context(), "op"), "1y"); err == nil || tool.AsError(err).Kind != tool.Invalid {
		t.Errorf("a year: %v", err)
	}
}
