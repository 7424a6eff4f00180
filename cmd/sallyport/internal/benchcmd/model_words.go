package benchcmd

import (
	"context"
	"errors"
	"time"

	"sallyport/bench/agent"
	"sallyport/bench/suite"
	gatewaytask "sallyport/gateway/task"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// priceOf returns the price of tokens. Those that were written to a cache count as read.
func (b *modelBench) priceOf(u agent.Usage) float64 {
	return b.price.Of(models.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output})
}

// runInWords has a gateway of its own do a task in words, as runOnce does in the other modes.
func (b *modelBench) runInWords(ctx context.Context, task *suite.Task) (r modelRun, fault *tool.Error, err error) {
	if err := b.world.Reset(); err != nil {
		return r, nil, err
	}
	setup, err := b.setup(task)
	if err != nil {
		return r, nil, err
	}
	m := agent.WordsModel{API: string(b.endpoint.API()), URL: b.URL, Name: b.endpoint.Model(), Key: b.key, Price: b.price}
	done, err := agent.RunInWords(ctx, setup, m, b.world.Expand(task.Prompt), agent.Limits{Turns: b.Turns, Time: b.Time})
	if err != nil && stopped(ctx) {
		err = ctx.Err()
	}
	if err != nil {
		return r, nil, err
	}
	r = b.newWordsRun(task, done)
	fault, failed := wordsFault(done)
	r.Why = b.failureReason(task, done.Answer, failed)
	r.Right = r.Why == ""
	return r, fault, nil
}

// newWordsRun returns the result of a task without its verdict.
func (b *modelBench) newWordsRun(task *suite.Task, done gatewaytask.Task) modelRun {
	r := modelRun{
		Endpoint: b.endpoint.Host(), API: b.endpoint.API(), Model: b.endpoint.Model(), Task: task.Name, Kind: task.Kind, Mode: suite.Words, Upstreams: b.upstreams(task),
		Answer: b.endpoint.Hide(done.Answer), Versions: b.versions, Price: done.Price,
	}
	var waited time.Duration
	estimated := false
	for _, t := range done.Turns {
		if t.Model != "" || t.Tokens.Tokens() > 0 {
			r.Turns++
			r.Served = sanitize.Line(b.endpoint.Hide(t.Model), 80)
		}
		r.Calls += len(t.Calls)
		waited += t.Waited
		estimated = estimated || t.Tokens.Estimated
	}
	if !estimated { // as in the other modes, which count what the endpoint reports
		r.Tokens = agent.Usage{Input: done.Tokens.Input, Cached: done.Tokens.Cached, Output: done.Tokens.Output}
	}
	r.Seconds, r.Waited = seconds(done.Ended.Sub(done.Begun)-waited), seconds(waited)
	return r
}

// wordsFault returns why a task has no answer of its model: a fault of the endpoint, for which rules have taken over, or
// what ended the task.
func wordsFault(done gatewaytask.Task) (fault *tool.Error, failed error) {
	switch {
	case done.Model == "rules":
		fault = &tool.Error{Kind: tool.Upstream, Message: "the model failed"}
		if len(done.Notes) > 0 {
			fault.Message = sanitize.Line(done.Notes[0], 300)
		}
		return fault, fault
	case done.Status != gatewaytask.Done:
		return nil, errors.New(string(done.Status) + ": " + done.Error)
	}
	return nil, nil
}
