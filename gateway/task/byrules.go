package task

import (
	"context"
	"slices"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/task/rules"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// ruleHits is how many tools rules consider.
const ruleHits = 24

// byRules works on the task without a model. why is the reason, "" if the request wants it.
func (l *loop) byRules(ctx context.Context, why string) (Status, error) {
	l.work.change(func(t *Task) {
		if t.Model = "rules"; why != "" {
			t.Notes = append(t.Notes, why+" Rules are used.")
		}
	})
	begun := time.Now()
	candidates, turn, err := l.candidates(ctx)
	if err != nil {
		return Failed, err
	}
	turn.Begun, turn.Duration = begun.UTC(), time.Since(begun)
	l.work.change(func(t *Task) { t.Turns = append(t.Turns, turn) })
	plan := rules.Make(rules.Request{Task: l.request.Task, Args: l.request.Args, Tools: candidates})
	l.work.change(func(t *Task) {
		t.Program, t.Language, t.Error = plan.Program, "python", ""
		for _, q := range plan.Missing {
			t.Questions = append(t.Questions, Question(q))
		}
	})
	switch {
	case plan.Refusal != "":
		return Refused, &tool.Error{Kind: tool.NotFound, Message: plan.Refusal, Hint: "say it in other words, name the tool, or use a model"}
	case len(plan.Missing) > 0:
		return l.asks(ctx, plan)
	case l.request.Plan:
		return Planned, nil
	}
	return l.runPlan(ctx, plan)
}

// candidates returns the tools that may be meant, the best first.
func (l *loop) candidates(ctx context.Context) (all []rules.Candidate, turn Turn, err error) {
	turn = Turn{Kind: KindSearch, Text: sanitize.Line(l.request.Task, maxKept)}
	found, err := l.tasks.opts.Gateway.Search(ctx, l.ruleSearch(l.request.Task))
	if err != nil {
		return nil, turn, err
	}
	for i, hit := range found.Tools {
		one, known := l.tasks.opts.Catalog.Tool(hit.ID)
		if !known || !l.mayUse(hit.ID.Upstream) || hit.Policy == "deny" {
			continue
		}
		turn.Found = append(turn.Found, hit.ID.String())
		all = append(all, rules.Candidate{Tool: one, Rank: i})
	}
	return all, turn, nil
}

func (l *loop) ruleSearch(query string) toolsearch.Request {
	s := toolsearch.Request{Query: sanitize.Line(query, toolsearch.MaxQuery), Detail: toolsearch.Names, Limit: ruleHits, Budget: 20_000}
	switch only := l.request.Only; {
	case len(only) == 1:
		s.Upstream = only[0]
	case len(only) > 1:
		s.Limit = searchLimit
	}
	return s
}

func (l *loop) mayUse(upstream string) bool {
	return len(l.request.Only) == 0 || slices.Contains(l.request.Only, upstream)
}

// runPlan runs the program of the rules.
func (l *loop) runPlan(ctx context.Context, plan rules.Plan) (Status, error) {
	turn := Turn{Kind: KindProgram, Text: plan.Program, Language: "python", Begun: time.Now().UTC()}
	e, err := l.execute(ctx, plan.Program, "python", &turn)
	turn.Duration = time.Since(turn.Begun)
	if err != nil {
		turn.Error = tool.AsError(err).Error()
	}
	l.work.change(func(t *Task) { t.Turns = append(t.Turns, turn) })
	if err != nil {
		return Failed, err
	}
	return l.answered(e)
}

// answered ends a task with the output of a program.
func (l *loop) answered(e execution.Result) (Status, error) {
	switch {
	case e.Status == execution.Held:
		return Held, nil
	case e.Failed():
		return Failed, &tool.Error{Kind: tool.Failed, Message: "the program failed: " + sanitize.Line(e.Ending(), 500), Hint: "change the program and run it with exec, or use a model"}
	}
	answer := sanitize.Text(e.Text(), 256<<10)
	if wrong := l.wrongAnswer(answer); wrong != "" {
		return Failed, &tool.Error{Kind: tool.Failed, Message: wrong, Hint: "use a model, which shapes the answer"}
	}
	l.work.change(func(t *Task) { t.Answer = answer })
	return Done, nil
}
