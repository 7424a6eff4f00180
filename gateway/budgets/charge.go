package budgets

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// Middleware counts each call before it is decided on, and demands that one beyond a budget is denied, so that the refusal is
// recorded as those of the policy are. A call that does not reach [CountMade] is taken back.
func (b *Budgets) Middleware(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		switch c.Tool.Name {
		case tool.ListResources, tool.ListTemplates, tool.ListPrompts: // answered from the catalog
			return next(ctx, c)
		}
		taken, full, err := b.take(ctx, tool.Principal(ctx), c.Tool, Calls)
		switch {
		case full != nil:
			refusal := tool.AsError(err)
			text := refusal.Error()
			return next(toolcall.WithDemand(ctx, toolcall.Demand{Action: policy.Deny, Rule: refusal.Rule, Reason: text, Message: text, Limited: true}), c)
		case err != nil:
			return tool.Result{}, err
		case taken == nil:
			return next(ctx, c)
		}
		scope := toolcall.ScopeOf(ctx)
		scope.Made = new(atomic.Bool)
		defer func() {
			if !scope.Made.Load() {
				taken.undo()
			}
		}()
		return next(scope.In(ctx), c)
	}
}

// CountMade is a middleware that marks calls that were allowed.
func CountMade(next toolcall.Handler) toolcall.Handler {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if made := toolcall.ScopeOf(ctx).Made; made != nil {
			made.Store(true)
		}
		return next(ctx, c)
	}
}

// Program is a program that was counted. The nil Program is of a principal without budgets.
type Program struct {
	charge *charge
	// left is what was left of the processor time at its start, by the budget named by.
	left time.Duration
	by   string
	over atomic.Bool
}

// Begin counts a program of the caller. The error is a *[tool.Error] for one that must not run. The caller calls End or Undo.
func (b *Budgets) Begin(ctx context.Context) (*Program, error) {
	principal := tool.Principal(ctx)
	meters := b.metersOf(principal, tool.ID{})
	if len(meters) == 0 {
		return nil, nil
	}
	if err := b.load(ctx, meters, CPU); err != nil {
		return nil, err
	}
	left, tightest := b.left(meters, CPU)
	if tightest != nil && left == 0 {
		return nil, b.refuse(ctx, principal, tightest, CPU)
	}
	taken, _, err := b.take(ctx, principal, tool.ID{}, Programs)
	if err != nil {
		return nil, err
	}
	p := &Program{charge: taken}
	if tightest != nil {
		p.left, p.by = time.Duration(left)*time.Microsecond, tightest.Name
	}
	return p, nil
}

// Limit returns the limit of the processor time of the program: limit, or what is left of the budget.
func (p *Program) Limit(limit time.Duration) time.Duration {
	if p == nil || p.by == "" || limit > 0 && limit < p.left {
		return limit
	}
	return max(p.left, time.Millisecond)
}

// Note returns a sentence for the model of a program that was stopped at the limit of its processor time; "" if that was not
// the limit of a budget.
func (p *Program) Note(limit time.Duration) string {
	if p == nil || p.by == "" || limit > p.left {
		return ""
	}
	return fmt.Sprintf("that was the rest of the processor time in budget %q, which %s", p.by, starts(time.Now()))
}

// End counts the processor time of a program that has ended.
func (p *Program) End(used time.Duration) {
	if p != nil && p.charge != nil && !p.over.Swap(true) {
		p.charge.budgets.add(p.charge.meters, CPU, used.Microseconds())
	}
}

// Undo takes back a program that did not run. It does nothing after End.
func (p *Program) Undo() {
	if p != nil && !p.over.Swap(true) {
		p.charge.undo()
	}
}

// MoneyLeft returns a *[tool.Error] if a principal has used up its money.
func (b *Budgets) MoneyLeft(ctx context.Context, principal string) error {
	meters := b.metersOf(principal, tool.ID{})
	if err := b.load(ctx, meters, Money); err != nil {
		return err
	}
	if left, tightest := b.left(meters, Money); tightest != nil && left == 0 {
		return b.refuse(ctx, principal, tightest, Money)
	}
	return nil
}

// Spend counts money that a principal has spent.
func (b *Budgets) Spend(principal string, money float64) {
	if b.opts.OnSpend != nil && money > 0 {
		b.opts.OnSpend(money)
	}
	if meters := b.metersOf(principal, tool.ID{}); money > 0 && len(meters) > 0 {
		b.add(meters, Money, int64(math.Ceil(money*millionths)))
	}
}

// refuse returns the error about a budget that is used up, and calls OnRefusal.
func (b *Budgets) refuse(ctx context.Context, principal string, m *meter, of Resource) *tool.Error {
	b.mu.Lock()
	used := m.used()[of]
	b.mu.Unlock()
	if b.opts.OnRefusal != nil {
		b.opts.OnRefusal(ctx, Refusal{Budget: m.Name, Principal: principal, Resource: of})
	}
	now := time.Now()
	return &tool.Error{
		Kind: tool.Limit, Message: fmt.Sprintf("budget %q is used up: %s today", m.Name, amountText(of, used, limitsOf(m.Budget)[of])),
		Hint: "it " + starts(now) + "; do not try again today: tell the user", After: nextDay(now).Sub(now), Rule: "budget " + m.Name,
	}
}

// starts says when budgets start again.
func starts(now time.Time) string {
	rest := nextDay(now).Sub(now)
	in := fmt.Sprintf("%d min", int(math.Ceil(rest.Minutes())))
	if rest >= 2*time.Hour {
		in = fmt.Sprintf("%d h", int(rest.Hours()))
	}
	return "starts again at 00:00 UTC, in " + in
}

func nextDay(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// names are the names of resources in texts.
var names = [resources]string{"calls", "programs", "s of processor time", "money"}

// String returns the name of a resource.
func (r Resource) String() string { return strings.TrimPrefix(names[r], "s of ") }

// amountText says how much of a limit is used.
func amountText(of Resource, used, limit int64) string {
	return fmt.Sprintf("%s of %s %s", numberText(of, used), numberText(of, limit), names[of])
}

func numberText(of Resource, n int64) string {
	switch of {
	case CPU:
		return fmt.Sprintf("%.4g", float64(n)/1e6)
	case Money:
		return fmt.Sprintf("%.4g", float64(n)/millionths)
	}
	return fmt.Sprint(n)
}
