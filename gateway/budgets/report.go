package budgets

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// Report is what was used of the budgets today.
type Report struct {
	// Resets is when all counts start again: the end of the day in UTC.
	Resets time.Time `json:"resets"`
	// Stored reports whether the counts are stored; otherwise they are of this process only.
	Stored bool `json:"stored"`
	// Budgets are the counts, those of which most is used first.
	Budgets []Row `json:"budgets"`
}

// Row is what was used of one budget by one principal, or by all that share it.
type Row struct {
	// Budget is the name of the budget.
	Budget string `json:"budget"`
	// Principal is the principal, omitted for a shared budget and for clients without a principal.
	Principal string `json:"principal,omitempty"`
	// Shared says that all principals of the budget are counted together.
	Shared bool `json:"shared,omitempty"`
	// Unused says that no principal of the budget was counted yet.
	Unused bool `json:"unused,omitempty"`
	// Calls, Programs, CPU (in milliseconds) and Money are omitted without a limit.
	Calls    *Use `json:"calls,omitempty"`
	Programs *Use `json:"programs,omitempty"`
	CPU      *Use `json:"cpu_ms,omitempty"`
	Money    *Use `json:"money,omitempty"`
}

// Use is what was used of one resource.
type Use struct {
	// Used is what was used today, Limit the limit.
	Used  float64 `json:"used"`
	Limit float64 `json:"limit"`
}

// UseText says how much of a limit is used, in multiples of unit; "" for nil.
func UseText(u *Use, unit float64, name string) string {
	if u == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.6g of %.6g %s", u.Used/unit, u.Limit/unit, name))
}

// Share returns the largest used fraction.
func (r Row) Share() (most float64) {
	for _, u := range []*Use{r.Calls, r.Programs, r.CPU, r.Money} {
		if u != nil {
			most = max(most, u.Used/u.Limit)
		}
	}
	return most
}

// maxRows bounds the rows of a report.
const maxRows = 1000

// BudgetReport returns what the caller has used today, or what all principals have used, for an operator.
func (b *Budgets) BudgetReport(ctx context.Context) (Report, error) {
	now := time.Now()
	report := Report{Resets: nextDay(now), Stored: b.opts.Records != nil, Budgets: []Row{}}
	set := b.opts.Settings.Load().Budgets
	if len(set) == 0 {
		return report, nil
	}
	operator := tool.Operator(ctx) != ""
	used, principals, err := b.usedOn(ctx, today(now))
	if err != nil {
		return Report{}, toolcall.Unreadable(ctx, b.opts.Logger, err)
	}
	if !operator {
		principals = []string{tool.Principal(ctx)}
	}
	for _, one := range set {
		report.Budgets = append(report.Budgets, b.rows(one, today(now), used, principals, operator)...)
	}
	slices.SortStableFunc(report.Budgets, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Share(), x.Share()), strings.Compare(x.Budget, y.Budget), strings.Compare(x.Principal, y.Principal))
	})
	report.Budgets = report.Budgets[:min(len(report.Budgets), maxRows)]
	return report, nil
}

// rows returns the rows of one budget for some principals.
func (b *Budgets) rows(one config.Budget, day string, used map[string]amounts, principals []string, operator bool) (all []Row) {
	for _, who := range principals {
		if !b.applies(one, who) {
			continue
		}
		c := newCount(day, one, who)
		all = append(all, newRow(one, c.principal, used[c.id]))
		if one.Shared {
			return all
		}
	}
	if len(all) == 0 && operator {
		row := newRow(one, "", used[newCount(day, one, "").id])
		row.Unused = !one.Shared || row.Share() == 0
		all = append(all, row)
	}
	return all
}

func newRow(one config.Budget, principal string, used amounts) Row {
	limits := limitsOf(one)
	use := func(of Resource, unit float64) *Use {
		if limits[of] == 0 {
			return nil
		}
		return &Use{float64(used[of]) / unit, float64(limits[of]) / unit}
	}
	return Row{Budget: one.Name, Principal: principal, Shared: one.Shared, Calls: use(Calls, 1), Programs: use(Programs, 1), CPU: use(CPU, 1000), Money: use(Money, millionths)}
}

// usedOn returns all amounts of a day by the ids of their counts, and the principals that were counted.
func (b *Budgets) usedOn(ctx context.Context, day string) (used map[string]amounts, principals []string, err error) {
	used = map[string]amounts{}
	note := func(id, principal string, shared bool, n amounts) {
		if _, known := used[id]; !known && !shared {
			principals = append(principals, principal)
		}
		used[id] = n
	}
	for entry, err := range b.bucket.List(ctx, store.Key{day}) {
		var r record
		if err == nil {
			err = json.Unmarshal(entry.Value, &r)
		}
		if err != nil {
			return nil, nil, err
		}
		note(strings.Join(entry.Key, " "), r.Principal, r.Shared, r.amounts())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, c := range b.counts {
		if c.day != day || c.read.IsZero() {
			continue
		}
		now := used[id] // another gateway may have written since the count was read
		for i, n := range c.used() {
			now[i] = max(now[i], n)
		}
		note(id, c.principal, c.shared, now)
	}
	slices.Sort(principals)
	return used, slices.Compact(principals), nil
}
