package task

import (
	"context"
	"fmt"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/tool"
)

// overLimit is the error for a limit that is used up. key is its key in the settings.
func overLimit(what, key string) *tool.Error {
	return &tool.Error{Kind: tool.Limit, Message: what, Hint: "tasks." + key + " sets the limit"}
}

// limitTime returns a context that ends with the time of the task, or with what its principal has left of the day.
func (l *loop) limitTime(ctx context.Context) (context.Context, context.CancelFunc, error) {
	limit := l.settings.Time
	cause := overLimit(fmt.Sprintf("the task did not end within %s", limit), "time")
	var used spent
	var err error
	if day := l.settings.Daily.Time; day > 0 {
		if used, _, err = l.tasks.records.today(ctx, l.work.task.Principal); err != nil {
			return ctx, func() {}, toolcall.Unreadable(ctx, l.tasks.log, err)
		}
		if err := overTime(day, used); err != nil {
			return ctx, func() {}, err
		}
		if left := day - used.Time; left < limit {
			limit, cause = left, overLimit(fmt.Sprintf("today's tasks took %s", day), "daily.time")
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
	return ctx, cancel, nil
}

// overTime returns an error if the time of a day is used up.
func overTime(day time.Duration, used spent) error {
	if day == 0 || used.Time < day {
		return nil
	}
	return overLimit(fmt.Sprintf("today's tasks took %s of %s", used.Time.Round(time.Second), day), "daily.time")
}

// withinLimits returns an error if the task or its principal has used up a limit.
func (l *loop) withinLimits(ctx context.Context, now Task) error {
	s := l.settings
	switch {
	case len(now.Turns) >= s.Turns:
		return overLimit(fmt.Sprintf("no answer after %d turns", s.Turns), "turns")
	case now.Tokens.Tokens() >= s.Tokens:
		return overLimit(fmt.Sprintf("the task used %d of %d tokens", now.Tokens.Tokens(), s.Tokens), "tokens")
	case s.Money > 0 && now.Price >= s.Money:
		return overLimit(fmt.Sprintf("the task cost %.4g of %.4g", now.Price, s.Money), "money")
	case l.failed > s.Repairs:
		return overLimit(fmt.Sprintf("%d programs in a row failed", l.failed), "repairs")
	case l.invalid >= maxInvalid:
		return &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("%d replies in a row were no search, program or answer", l.invalid), Hint: "use a larger model"}
	}
	if err := l.withinDay(ctx, s.Daily, now.Principal); err != nil || l.tasks.opts.Budgets == nil {
		return err
	}
	return l.tasks.opts.Budgets.MoneyLeft(ctx, now.Principal)
}

// withinDay returns an error if a principal has used up a limit of the day.
func (l *loop) withinDay(ctx context.Context, day config.DailyTasks, principal string) error {
	if day == (config.DailyTasks{}) {
		return nil
	}
	used, _, err := l.tasks.records.today(ctx, principal)
	switch {
	case err != nil:
		return toolcall.Unreadable(ctx, l.tasks.log, err)
	case day.Tokens > 0 && used.Tokens >= day.Tokens:
		return overLimit(fmt.Sprintf("today's tasks used %d of %d tokens", used.Tokens, day.Tokens), "daily.tokens")
	case day.Money > 0 && used.Price >= day.Money:
		return overLimit(fmt.Sprintf("today's tasks cost %.4g of %.4g", used.Price, day.Money), "daily.money")
	}
	return overTime(day.Time, used)
}

// spend records the tokens of a turn.
func (l *loop) spend(ctx context.Context, turn Turn) {
	l.work.change(func(t *Task) { t.Tokens, t.Price = t.Tokens.Plus(turn.Tokens), t.Price+turn.Price })
	l.charge(ctx, turn.Tokens, turn.Price)
	if l.tasks.opts.Budgets != nil {
		l.tasks.opts.Budgets.Spend(l.work.task.Principal, turn.Price)
	}
}

// charge adds tokens, their price and the time since the last charge to the day of the principal.
func (l *loop) charge(ctx context.Context, u models.Usage, price float64) {
	now := l.tasks.opts.Now()
	took := now.Sub(l.charged)
	l.charged = now
	if err := l.tasks.records.add(ctx, l.work.task.Principal, u, price, took); err != nil {
		l.tasks.log.ErrorContext(ctx, "what a task used was not recorded", "error", err)
	}
}
