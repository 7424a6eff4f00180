package workflowcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/cmd/sallyport/internal/engine"
	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/forms"
	"sallyport/gateway/workflow/runlog"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/timeline"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// pollWait is how long one request waits for events, in seconds.
const pollWait = 20

// watcher watches one run, and asks the user for forms and approvals.
type watcher struct {
	*app
	run    workflow.Run
	asJSON bool
	// file is the definition of a file that this process runs; nil: the engine of the data directory runs one by its name.
	file *spec.Definition
	// key makes the start idempotent.
	key string
	// given are answers to forms, by step and field. Sent answers are removed.
	given map[string]map[string]any
	// signals receives the signals, including the one that ends ctx.
	signals  <-chan os.Signal
	prompter *prompter
	// asking is set while the user is asked. An interrupt then leaves the run waiting.
	asking   atomic.Bool
	after    int // number of events that were printed
	began    map[string]time.Time
	reported map[string]bool // waits that were already printed
}

// watch prints the progress of the run until it is over or waits for another person. When ctx ends, it cancels the
// run; with the next signal it stops watching.
func (w *watcher) watch(ctx context.Context, g *engine.Client) error {
	if w.began == nil {
		w.began, w.reported = map[string]time.Time{}, map[string]bool{}
	}
	following, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() { w.stop(following, g, leave) })()
	for {
		over, err := w.poll(following, g)
		if err == nil && !over && ctx.Err() == nil {
			var held bool
			if held, err = w.answerPending(ctx, g); held && err == nil {
				return w.reportSuspended()
			}
		}
		switch {
		case following.Err() != nil:
			w.Say("run " + w.run.ID + " is left as it is: sallyport workflow log " + w.run.ID)
			return cli.Status(cli.ExitInterrupted)
		case err != nil:
			return err
		case over:
			return w.outcome()
		}
	}
}

// startAsking sets asking until over is called. It stays set if ctx has ended then.
func (w *watcher) startAsking(ctx context.Context) (over func()) {
	w.asking.Store(true)
	return func() { w.asking.Store(ctx.Err() != nil) }
}

// stop cancels the run, and calls leave at the next signal.
func (w *watcher) stop(ctx context.Context, g *engine.Client, leave func()) {
	if w.asking.Load() {
		return
	}
	w.Say("canceling " + w.run.ID + "; interrupt again to leave it")
	var now workflow.Run
	if err := g.Post(ctx, runPath(w.run.ID)+"/cancel", httpapi.Nothing{}, &now); err != nil {
		w.Report(err)
	}
	select {
	case <-w.signals: // the one that ended ctx is received here too
	case <-ctx.Done():
	}
	select {
	case <-w.signals:
		leave()
	case <-ctx.Done():
	}
}

// poll fetches the next events and the run, and prints the events.
func (w *watcher) poll(ctx context.Context, g *engine.Client) (over bool, err error) {
	var list httpapi.EventList
	wait := pollWait
	if w.run.Status == workflow.Waiting && len(w.reported) == 0 {
		wait = 1 // it may wait for this user
	}
	err = g.Get(ctx, fmt.Sprintf("%s/events?values=none&after=%d&wait=%d", runPath(w.run.ID), w.after, wait), &list)
	if err != nil {
		return false, gatewayError(err)
	}
	for _, e := range list.Events {
		w.printEvent(e)
	}
	w.after = list.Next
	path := runPath(w.run.ID)
	if list.Over { // the run's status is updated soon
		path += "?wait=10"
	}
	return list.Over, gatewayError(g.Get(ctx, path, &w.run))
}

// gatewayError returns errGatewayGone for an error of the connection, and other errors unchanged.
func gatewayError(err error) error {
	if _, refused := errors.AsType[*tool.Error](err); err == nil || refused || errors.Is(err, context.Canceled) {
		return err
	}
	return errGatewayGone
}

// printEvent prints an event.
func (w *watcher) printEvent(e workflow.Event) {
	if e.Time.Before(w.run.Started) { // taken over from another run
		return
	}
	switch e.Kind {
	case runlog.Began:
		if _, again := w.began[e.Path]; !again {
			w.began[e.Path] = e.Time
		}
	case runlog.Retrying:
		w.printProgress("again", e.Path, faultText(e.Error))
	case runlog.Ended:
		if (isLaterPass(e.Path) || strings.HasSuffix(e.Path, "]")) && e.Outcome != "failed" {
			return
		}
		took := ""
		if began, ok := w.began[e.Path]; ok {
			took = "  " + formatDuration(e.Time.Sub(began))
		}
		w.printProgress(e.Outcome, e.Path, took+faultText(e.Error))
	case runlog.Created, runlog.Claimed, runlog.Waits, runlog.Answered, runlog.Reentered, runlog.Stopping, runlog.Over:
	}
}

// printProgress prints a line of progress.
func (w *watcher) printProgress(word, path, rest string) {
	fmt.Fprintf(w.Stderr, "%-9s %s%s\n", cli.Cell(word, 20), cli.Cell(path, 200), cli.Clean(rest))
}

func faultText(fault *workflow.Fault) string {
	if fault == nil {
		return ""
	}
	return "  " + cli.Cell(string(fault.Kind)+": "+fault.Message, 300)
}

var pass = regexp.MustCompile(`\[(\d+)\]`)

// isLaterPass reports whether a step is in a later pass of a loop. Such steps are not printed.
func isLaterPass(path string) bool {
	for _, m := range pass.FindAllStringSubmatch(path, -1) {
		if n, err := strconv.Atoi(m[1]); err != nil || n >= timeline.ShownPasses {
			return true
		}
	}
	return false
}

// answerPending answers what the run waits for. Held reports that this user cannot.
func (w *watcher) answerPending(ctx context.Context, g *engine.Client) (held bool, err error) {
	if w.run.Status != workflow.Waiting {
		return false, nil
	}
	for _, p := range w.run.Waiting {
		var done bool
		switch p.For {
		case "form":
			done, err = w.answerForm(ctx, g, p)
		case "approval":
			done, err = w.answerApproval(ctx, g, p)
		default:
			w.reportWait(p, "until "+p.Until.Local().Format(time.DateTime))
			continue
		}
		if done || err != nil {
			return false, err
		}
		held = true
	}
	return held, nil
}

// reportWait prints what a step waits for, once.
func (w *watcher) reportWait(p workflow.Pending, what string) {
	if key := p.Step + " " + what; !w.reported[key] {
		w.reported[key] = true
		w.printProgress("waits", p.Step, "  "+what)
	}
}

// reportSuspended prints how to resume a run that waits for another person.
func (w *watcher) reportSuspended() error {
	for _, p := range w.run.Waiting {
		switch p.For {
		case "form":
			var ask forms.Ask
			_ = json.Unmarshal(p.Form, &ask) // as far as it can be decoded
			w.Say(fmt.Sprintf("%s waits at %s for %s: sallyport workflow answer %s %s NAME=VALUE...", w.run.ID, p.Step, fieldNames(&ask), w.run.ID, p.Step))
		case "approval":
			w.Say(fmt.Sprintf("%s waits at %s for approval: sallyport approvals approve %s, then sallyport workflow resume %s", w.run.ID, p.Step, p.Approval, w.run.ID))
		}
	}
	if w.asJSON {
		if err := w.PrintJSON(w.run); err != nil {
			return err
		}
	}
	return cli.Status(cli.ExitSuspended)
}

// fieldNames returns the names of the fields of a form.
func fieldNames(ask *forms.Ask) string {
	var names []string
	for _, q := range ask.Fields {
		names = append(names, q.Name)
	}
	if len(names) == 0 {
		return "a form"
	}
	return cli.Cell(strings.Join(names, ", "), 200)
}

// userPrompter returns the asker for the user at the terminal, nil without a terminal.
func (w *watcher) userPrompter() *prompter {
	if w.prompter == nil && cli.IsTerminal(w.Stdin) {
		w.prompter = newPrompter(w.Stdin, w.Stderr)
	}
	return w.prompter
}

// answerForm answers with the values of the command line, else asks the user.
func (w *watcher) answerForm(ctx context.Context, g *engine.Client, p workflow.Pending) (done bool, err error) {
	f := &remoteForm{gate: g, run: &w.run, step: p.Step}
	if values := w.given[p.Step]; len(values) > 0 {
		delete(w.given, p.Step)
		problems, err := f.Answer(ctx, values)
		if err == nil && len(problems) > 0 {
			err = &tool.Error{Kind: tool.Invalid, Message: problems[0].Message, Hint: "run " + w.run.ID + " waits for valid answers: sallyport workflow answer " + w.run.ID + " " + p.Step + " NAME=VALUE"}
		}
		return true, err
	}
	who := w.userPrompter()
	if who == nil {
		return false, nil
	}
	defer w.startAsking(ctx)()
	err = who.fill(ctx, f)
	if errors.Is(err, errAborted) || ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// remoteForm is a form of a run in any engine. It implements [forms.Filler].
type remoteForm struct {
	gate *engine.Client
	run  *workflow.Run
	step string
}

// Next returns the open questions of the form; nil when it does not wait any more.
func (f *remoteForm) Next(ctx context.Context) (*forms.Ask, error) {
	var now workflow.Run
	if err := f.gate.Get(ctx, runPath(f.run.ID), &now); err != nil {
		return nil, gatewayError(err)
	}
	*f.run = now
	for _, p := range now.Waiting {
		if p.Step == f.step && p.For == "form" {
			ask := &forms.Ask{}
			return ask, json.Unmarshal(p.Form, ask)
		}
	}
	return nil, nil
}

// Answer submits values, and returns what is wrong with them.
func (f *remoteForm) Answer(ctx context.Context, values map[string]any) ([]forms.Problem, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	err = gatewayError(f.gate.Post(ctx, runPath(f.run.ID)+"/answer", httpapi.FormAnswer{Step: f.step, Values: data}, f.run))
	if wrong, ok := errors.AsType[*tool.Error](err); ok && wrong.Kind == tool.Invalid {
		return []forms.Problem{{Field: f.step, Message: wrong.Message, Hint: wrong.Hint}}, nil
	}
	return nil, err
}

// answerApproval asks the user whether a call may be made.
func (w *watcher) answerApproval(ctx context.Context, g *engine.Client, p workflow.Pending) (done bool, err error) {
	var one approvals.Approval
	if err := g.Get(ctx, "/approvals/"+url.PathEscape(p.Approval), &one); err != nil {
		return false, gatewayError(err)
	}
	if one.State != approval.Waiting {
		return true, nil // the run continues soon
	}
	who := w.userPrompter()
	if who == nil {
		return false, nil
	}
	defer w.startAsking(ctx)()
	who.say(cli.DescribeApproval(one))
	for {
		fmt.Fprint(w.Stderr, "allow? y this call, e this whole run, n no: ")
		line, err := who.readLine(ctx)
		if errors.Is(err, errAborted) || ctx.Err() != nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		d, known := cli.DecisionOf(firstByte(strings.TrimSpace(line)))
		if !known || d.Scope == approval.Session {
			continue
		}
		var now approvals.Approval
		return true, gatewayError(g.Post(ctx, "/approvals/"+url.PathEscape(p.Approval), d, &now))
	}
}

func firstByte(text string) byte {
	if text == "" {
		return 0
	}
	return text[0]
}
